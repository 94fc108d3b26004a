//! Test doubles that speak the real wire: scripted servers, models and tools.
