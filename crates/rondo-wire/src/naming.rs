//! The response id and model name that a provider reports, emitted once.

use crate::json::{Text, nonempty};
use rondo_types::{ModelEvent, ResponseName};

/// The bound on an id or a name, in bytes. Providers' are far below; what is longer is none.
const NAME_BYTES_MAX: usize = 512;

/// Emits the provider's id of the response and its name of the model once, though each event may have them.
///
/// Gateways send empty ones first, and some change the id from event to event: the first counts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Naming {
    has_id: bool,
    has_model: bool,
}

impl Naming {
    /// Takes an event.
    pub(crate) fn take(
        &mut self,
        id: Option<&Text<'_>>,
        model: Option<&Text<'_>>,
        out: &mut Vec<ModelEvent>,
    ) {
        let name = ResponseName {
            id: first(&mut self.has_id, id),
            model: first(&mut self.has_model, model),
        };
        if !name.is_unknown() {
            out.push(ModelEvent::ResponseNamed(name));
        }
    }
}

fn first(known: &mut bool, text: Option<&Text<'_>>) -> Option<String> {
    if *known {
        return None;
    }
    let text = nonempty(text).filter(|text| text.len() <= NAME_BYTES_MAX)?;
    *known = true;
    Some(text.to_owned())
}
