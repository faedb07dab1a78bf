// The precompiled header is all that this library is for.
