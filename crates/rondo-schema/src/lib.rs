//! Tool arguments: JSON Schema validation and deterministic repair.
