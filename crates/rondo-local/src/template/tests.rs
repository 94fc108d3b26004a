//! Tests: templates of the families, and what a file may bring in their place.

use super::*;

fn template(source: &str) -> Template {
    Template {
        source: source.to_owned(),
        beginning: "<|begin_of_text|>".to_owned(),
        end: "<|eot_id|>".to_owned(),
    }
}

fn form(text: &str) -> Piece {
    Piece::Form(text.to_owned())
}

const ASKED: [(&str, &[usize]); 2] = [("system", &[0, 1]), ("user", &[2])];

/// As Llama 3's does it: a beginning, headers, and contents trimmed.
const WITH_HEADERS: &str = "{{- bos_token }}
{%- for message in messages %}
    {{- '<|start|>' + message['role'] + '<|end|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start|>assistant<|end|>\\n\\n' }}
{%- endif %}
";

/// As Qwen3's does it: a namespace, the messages backwards, methods of texts, and thoughts cut out.
const WITH_THOUGHTS: &str = "{%- if messages[0].role == 'system' %}
    {{- '<s>' + messages[0].role + '\\n' + messages[0].content + '</s>\\n' }}
{%- endif %}
{%- set ns = namespace(last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if message.role == 'user' and message.content is string and not message.content.startswith('<tool>') %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {{- '<s>user\\n' + message.content + '</s>\\n' }}
    {%- elif message.role == 'assistant' %}
        {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
        {{- '<s>assistant\\n' + content.strip('\\n') + '</s>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<s>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
";

#[test]
fn templates_of_the_families_show_each_message_once() {
    assert_eq!(
        template(WITH_HEADERS).render(&ASKED).unwrap(),
        [
            form("<|begin_of_text|><|start|>system<|end|>\n\n"),
            Piece::Text(0),
            Piece::Text(1),
            form("<|eot_id|><|start|>user<|end|>\n\n"),
            Piece::Text(2),
            form("<|eot_id|><|start|>assistant<|end|>\n\n"),
        ]
    );
    let said: [(&str, &[usize]); 4] = [
        ("system", &[0, 1]),
        ("user", &[2]),
        ("assistant", &[3]),
        ("user", &[4]),
    ];
    assert_eq!(
        template(WITH_THOUGHTS).render(&said).unwrap(),
        [
            form("<s>system\n"),
            Piece::Text(0),
            Piece::Text(1),
            form("</s>\n<s>user\n"),
            Piece::Text(2),
            form("</s>\n<s>assistant\n"),
            Piece::Text(3),
            form("</s>\n<s>user\n"),
            Piece::Text(4),
            form("</s>\n<s>assistant\n<think>\n\n</think>\n\n"),
        ]
    );
    assert_eq!(
        template(CHAT_ML).render(&ASKED).unwrap(),
        [
            form("<|im_start|>system\n"),
            Piece::Text(0),
            Piece::Text(1),
            form("<|im_end|>\n<|im_start|>user\n"),
            Piece::Text(2),
            form("<|im_end|>\n<|im_start|>assistant\n"),
        ]
    );
}

#[test]
fn templates_that_cannot_be_used_are_refused_with_the_reason() {
    let forever = "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}";
    for (source, reason) in [
        ("{{ messages[1].content }}", "leaves out"),
        (
            "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}",
            "repeats",
        ),
        (
            "{% for m in messages[::-1] %}{{ m.content }}{% endfor %}",
            "moves",
        ),
        (
            "{{ raise_exception('No system messages, please.') }}",
            "No system messages",
        ),
        ("{% for %}", "fails"),
        ("{{ messages | no_such_filter }}", "no_such_filter"),
        ("{{ 'x' * 99999999999 }}", "fuel"),
        (forever, "fuel"),
    ] {
        let refused = template(source).render(&ASKED).unwrap_err().to_string();
        assert!(refused.contains(reason), "{source}: {refused}");
        assert!(
            refused.contains("each message of system, user and assistant"),
            "{refused}"
        );
    }
}

#[test]
fn what_looks_like_a_placeholder_and_is_none_stays_form() {
    let open = format!("a{OPENING}b{OPENING}7{CLOSING}c{CLOSING}");
    assert_eq!(
        pieces(&open),
        [form("ab"), Piece::Text(7), form(&format!("c{CLOSING}"))]
    );
    assert_eq!(pieces(""), []);
}
