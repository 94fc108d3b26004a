//! What the workspace promises about its own shape.

mod copies;
mod dependencies;
mod documents;
mod files;
mod imports;
mod library_cost;
mod manifests;
mod rules;
mod rust_text;
mod tree;
mod units;
