//! Pages of the web, searches and PDFs, as the binary's users meet them.

use crate::harness::{TestEnv, calls, says, serve};
use rondo_testkit::{Response, Script, Server};
use serde_json::{Value, json};

/// Returns the last result that the model read.
fn told(server: &Server) -> String {
    let request = server.requests().pop().unwrap().json();
    let messages = request["messages"].as_array().unwrap();
    messages.last().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn offered(server: &Server) -> Vec<String> {
    let request = server.requests().pop().unwrap().json();
    let tools = request["tools"].as_array().unwrap();
    let names = tools
        .iter()
        .map(|it| it["function"]["name"].as_str().unwrap().to_owned());
    names.collect()
}

/// Asks, with a call of a tool in the reply, and returns what the model read of it.
async fn call(env: &TestEnv, name: &str, arguments: &Value, flags: &[&str]) -> String {
    let server = serve(vec![calls(name, arguments), says("done")]).await;
    let shown = env.ask(&server, &[flags, &["x"]].concat()).await;
    assert!(matches!(shown.code, Some(0 | 44)), "{shown:?}");
    told(&server)
}

#[tokio::test]
async fn a_page_of_this_machine_is_read_only_if_the_user_allows_its_host() {
    let page = "<title>Local</title><article><h1>Keepers</h1><p>Some words here.</p></article>";
    let site = Server::start(Script::repeat(Response::html(200, page))).await;
    let url = json!({"url": site.url("/page")});
    let env = TestEnv::new();
    let refused = call(&env, "web_fetch", &url, &["--yolo"]).await;
    assert!(refused.contains("is not reached"), "{refused}");
    // A repository allows no host.
    std::fs::create_dir_all(env.project().join(".rondo")).unwrap();
    let setting = format!("web_allow_hosts = ['{}']\n", site.address());
    env.write(".rondo/config.toml", &setting);
    let refused = call(&env, "web_fetch", &url, &["--yolo"]).await;
    assert!(refused.contains("is not reached"), "{refused}");
    assert_eq!(site.requests().len(), 0);
    env.user_config(&setting);
    let read = call(&env, "web_fetch", &url, &["--yolo"]).await;
    assert!(read.contains("Some words here."), "{read}");
    assert_eq!(site.requests().len(), 1);
}

#[tokio::test]
async fn a_page_is_asked_about_and_denied_with_a_plan_and_where_nobody_answers() {
    let site = Server::start(Script::repeat(Response::html(200, "x"))).await;
    let env = TestEnv::new();
    env.user_config(&format!("web_allow_hosts = ['{}']\n", site.address()));
    let url = json!({"url": site.url("/")});
    for flags in [&[][..], &["--plan"], &["--approval", "deny"]] {
        call(&env, "web_fetch", &url, flags).await;
        assert_eq!(site.requests().len(), 0, "{flags:?}");
    }
    call(&env, "web_fetch", &url, &["--allowed-tools", "web_fetch"]).await;
    assert_eq!(site.requests().len(), 1);
}

#[tokio::test]
async fn no_search_is_offered_unless_one_is_chosen_and_nothing_that_is_forbidden() {
    let env = TestEnv::new();
    let server = serve(vec![says("done")]).await;
    env.ask(&server, &["x"]).await.check("done\n", "", 0);
    let names = offered(&server);
    assert!(names.contains(&"web_fetch".to_owned()), "{names:?}");
    assert!(!names.contains(&"web_search".to_owned()), "{names:?}");
    let server = serve(vec![says("done")]).await;
    let flags = ["--disallowed-tools", "web_fetch", "x"];
    env.ask(&server, &flags).await.check("done\n", "", 0);
    assert!(!offered(&server).contains(&"web_fetch".to_owned()));
}

#[tokio::test]
async fn a_search_engine_is_asked_where_one_is_configured() {
    let answer = json!({"results": [
        {"title": "Serde", "url": "https://serde.rs/", "content": "A framework"}
    ]});
    let engine = Server::start(Script::repeat(Response::json(200, &answer))).await;
    let env = TestEnv::new();
    env.user_config(&format!(
        "web_search = 'searxng'\nweb_search_url = '{}'\n",
        engine.url("/")
    ));
    let found = call(&env, "web_search", &json!({"query": "serde"}), &["--yolo"]).await;
    assert_eq!(found, "1. Serde\n   https://serde.rs/\n   A framework");
}

#[tokio::test]
async fn a_search_that_lacks_its_key_or_address_is_a_configuration_error() {
    for (engine, missing) in [("brave", "BRAVE_API_KEY"), ("searxng", "web_search_url")] {
        let env = TestEnv::new().var("RONDO_WEB_SEARCH", engine);
        let server = serve(vec![says("done")]).await;
        let shown = env.ask(&server, &["x"]).await;
        assert_eq!(shown.code, Some(52), "{shown:?}");
        assert!(shown.stderr.contains(missing), "{shown:?}");
        assert_eq!(server.requests().len(), 0);
    }
}

#[tokio::test]
async fn a_pdf_is_read_as_text_and_a_broken_one_harms_nothing() {
    let env = TestEnv::new();
    env.write("sound.pdf", pdf("Of a PDF"));
    let broken = pdf("x").split_at(200).0.to_vec();
    env.write("broken.pdf", broken);
    let read = call(&env, "read_file", &json!({"path": "sound.pdf"}), &[]).await;
    assert_eq!(
        read,
        "[sound.pdf, a PDF of 1 pages as text: lines 1-3 of 3, 19 bytes]\n[page 1]\nOf a PDF\n\n"
    );
    let read = call(&env, "read_file", &json!({"path": "broken.pdf"}), &[]).await;
    assert!(read.contains("is a PDF that cannot be read"), "{read}");
}

/// Writes a PDF of one page.
fn pdf(text: &str) -> Vec<u8> {
    let content = format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut table = "xref\n0 6\n0000000000 65535 f \n".to_owned();
    for (index, object) in objects.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", index + 1));
    }
    let start = file.len();
    file.push_str(&table);
    file.push_str(&format!(
        "trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    ));
    file.into_bytes()
}
