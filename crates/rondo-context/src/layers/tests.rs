//! The order of the layers, who reads which, and what is cut.

use super::*;

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn workspace() -> ContextLayers {
    ContextLayers {
        soul: text("Be kind.\n"),
        agents: text("Answer briefly."),
        facts: text("This chat is telegram."),
        bootstrap: text("Begin well."),
        user: text("The owner is Ada."),
        skills: vec![ListedSkill {
            name: "pdf".to_owned(),
            description: "Fill in forms.".to_owned(),
            is_foreign: false,
        }],
        tools: text("`exec` has no network."),
        ..ContextLayers::default()
    }
    .with_memory("MEMORY.md", text("- Likes tea."))
}

fn kinds(layers: &[Layer]) -> Vec<LayerKind> {
    layers.iter().map(|layer| layer.kind).collect()
}

#[test]
fn hub_25_layers_stand_in_their_order() {
    let layers = workspace().layers(Audience::Owner);
    assert_eq!(kinds(&layers), LayerKind::ALL[..5]);
    let texts: Vec<&str> = layers.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(texts[0], "Be kind.\n\nAnswer briefly.");
    assert_eq!(
        texts[1],
        "This chat is telegram.\n\nBegin well.\n\nThe owner is Ada."
    );
    assert!(texts[2].contains("<memory path=\"MEMORY.md\">\n- Likes tea.\n</memory>"));
    assert!(texts[3].ends_with("- pdf: Fill in forms."));
    assert_eq!(texts[4], "`exec` has no network.");
    assert_eq!(ContextLayers::default().layers(Audience::Owner), []);
    let blank = ContextLayers {
        soul: text(" \n"),
        ..ContextLayers::default()
    };
    assert_eq!(blank.layers(Audience::Owner), []);
}

#[test]
fn what_is_private_is_for_the_owner_alone() {
    let layers = workspace().layers(Audience::Others);
    assert!(!kinds(&layers).contains(&LayerKind::Memory));
    let all: String = layers.iter().map(|it| it.text.as_str()).collect();
    assert!(!all.contains("Ada") && !all.contains("tea"), "{all}");
}

#[test]
fn a_file_is_cut_at_its_bound() {
    let is_cut = |bytes: usize| {
        let workspace = ContextLayers {
            soul: Some("s".repeat(bytes)),
            ..ContextLayers::default()
        };
        workspace.layers(Audience::Owner)[0].text.contains("[cut:")
    };
    let max = CONTEXT_FILE_BYTES_MAX;
    assert_eq!([max - 1, max, max + 1].map(is_cut), [false, false, true]);
}

fn layer(kind: LayerKind, lines: usize) -> Layer {
    Layer {
        kind,
        text: "123456789\n".repeat(lines),
    }
}

fn budget(tokens: u64) -> TokenBudget {
    TokenBudget {
        tokens,
        // One byte a token, so that the figures below are bytes.
        estimate: TokenEstimate::calibrated(1000, 1000),
    }
}

#[test]
fn hub_26_the_oldest_history_goes_first() {
    let layers = vec![layer(LayerKind::System, 10), layer(LayerKind::Tools, 10)];
    let left_out = |tokens| budget(tokens).fit(layers.clone(), &[50, 60, 70], 30);
    let all = 200 + 50 + 60 + 70 + 30;
    for (tokens, expected) in [
        (all, 0),
        (all - 1, 1),
        (all - 50, 1),
        (all - 51, 2),
        (all - 111, 3),
    ] {
        let fitted = left_out(tokens);
        assert_eq!(fitted.groups_left_out, expected, "{tokens}");
        assert_eq!((fitted.layers, fitted.cut), (layers.clone(), vec![]));
    }
}

#[test]
fn hub_26_tools_then_skills_then_memory_are_cut_and_nothing_else() {
    let kinds_all = [
        LayerKind::System,
        LayerKind::Bootstrap,
        LayerKind::Memory,
        LayerKind::Skills,
        LayerKind::Tools,
    ];
    let layers = || kinds_all.map(|kind| layer(kind, 100)).to_vec();
    let cut = |tokens| budget(tokens).fit(layers(), &[], 10);
    let three_quarters = |layers: u64| layers.div_ceil(3) * 4;
    assert_eq!(cut(three_quarters(5000)).cut, []);
    assert_eq!(cut(three_quarters(4900)).cut, [LayerKind::Tools]);
    let some = cut(three_quarters(3500));
    assert_eq!(some.cut, [LayerKind::Tools, LayerKind::Skills]);
    assert_eq!(kinds(&some.layers), kinds_all[..4]);
    assert!(
        some.layers[3]
            .text
            .ends_with("[cut: the context has no room for the rest]")
    );
    assert!(some.layers[3].text.len() <= 500);
    let hardly = cut(10);
    assert_eq!(hardly.cut.len(), 3);
    assert_eq!(hardly.layers, layers()[..2]);
}

#[test]
fn the_layers_are_equal_however_long_the_history_is() {
    let layers = || workspace().layers(Audience::Owner);
    for tokens in [40, 200, 400, 100_000] {
        let fitted = |groups: &[usize], message| budget(tokens).fit(layers(), groups, message);
        let first = fitted(&[], 1).layers;
        assert_eq!(fitted(&[100, 2000], 50).layers, first);
        assert_eq!(fitted(&[100; 40], 5000).layers, first);
    }
}

#[test]
fn estimates_follow_what_was_reported() {
    assert_eq!(TokenEstimate::default().tokens(400), 100);
    assert_eq!(TokenEstimate::default().tokens(401), 101);
    assert_eq!(TokenEstimate::calibrated(2000, 1000).tokens(400), 200);
    assert_eq!(TokenEstimate::calibrated(10, 255), TokenEstimate::default());
    assert_eq!(TokenEstimate::calibrated(10, 256).tokens(100), 100);
    assert_eq!(TokenEstimate::calibrated(u64::MAX, 256).tokens(600), 100);
}
