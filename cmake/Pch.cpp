// Exists so that one target owns the precompiled header (cmake/Pch.h).
