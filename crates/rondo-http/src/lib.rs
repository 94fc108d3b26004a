//! The HTTP transport behind the model port.
