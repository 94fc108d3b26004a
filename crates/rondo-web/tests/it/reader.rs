//! Documents that are sound, broken, and made to do harm.

use rondo_launch::SupervisorCommand;
use rondo_web::reader::{Document, ReadError, ReadText, Reader};
use std::time::Duration;

pub(crate) fn reader() -> Reader {
    let program = env!("CARGO_BIN_EXE_rondo-reader").into();
    // A machine under load needs more than the usual time.
    Reader::new(SupervisorCommand::Path(program)).with_time_max(Duration::from_secs(120))
}

/// Writes a PDF of one page for each text.
pub(crate) fn pdf(pages: &[&str]) -> Vec<u8> {
    let kids: Vec<String> = (0..pages.len())
        .map(|it| format!("{} 0 R", 4 + 2 * it))
        .collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!(
            "<< /Type /Pages /Kids [{}] /Count {} >>",
            kids.join(" "),
            pages.len()
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    for (index, text) in pages.iter().enumerate() {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
            5 + 2 * index
        ));
        let content = format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET");
        objects.push(format!(
            "<< /Length {} >>\nstream\n{content}\nendstream",
            content.len()
        ));
    }
    written(&objects)
}

fn written(objects: &[String]) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend_from_slice(format!("{} 0 obj\n{object}\nendobj\n", index + 1).as_bytes());
    }
    let start = file.len();
    file.extend_from_slice(
        format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).as_bytes(),
    );
    for place in places {
        file.extend_from_slice(format!("{place:010} 00000 n \n").as_bytes());
    }
    let size = objects.len() + 1;
    file.extend_from_slice(
        format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n").as_bytes(),
    );
    file
}

async fn read_pdf(bytes: &[u8]) -> Result<ReadText, ReadError> {
    reader().read(&Document::Pdf, bytes).await
}

async fn read_html(html: &str) -> Result<ReadText, ReadError> {
    let url = "https://docs.example/a".to_owned();
    let document = Document::Html { url, whole: false };
    reader().read(&document, html.as_bytes()).await
}

#[tokio::test]
async fn the_pages_of_a_pdf_are_read_in_order() {
    let read = read_pdf(&pdf(&["Hello there", "Second page"]))
        .await
        .unwrap();
    assert_eq!(
        read.text,
        "[page 1]\nHello there\n\n[page 2]\nSecond page\n\n"
    );
    assert_eq!((read.pages, read.is_cut), (Some(2), false));
}

#[tokio::test]
async fn a_page_is_read_as_markdown() {
    let read = read_html("<title>T</title><h1>Big</h1><p>Some <b>bold</b> words.</p>").await;
    let read = read.unwrap();
    assert!(read.text.contains("Some **bold** words."), "{read:?}");
}

#[tokio::test]
async fn a_broken_pdf_is_an_error() {
    let whole = pdf(&["Hello there"]);
    let mut cases: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"%PDF-1.7".to_vec(),
        b"%PDF-1.7\n%%EOF".to_vec(),
        vec![b'x'; 10_000],
    ];
    cases.extend([10, 100, 300, 500].map(|end| whole[..end.min(whole.len())].to_vec()));
    for case in cases {
        let read = read_pdf(&case).await;
        assert!(
            matches!(read, Err(ReadError::Unreadable(_))),
            "{:?}: {read:?}",
            String::from_utf8_lossy(&case)
        );
    }
}

#[tokio::test]
async fn a_pdf_that_is_made_to_do_harm_ends_its_own_process_alone() {
    let page = |rest: &str| {
        format!("<< /Type /Page /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> {rest} >>")
    };
    let pages = "<< /Type /Pages /Kids [3 0 R] /Count 1 /Parent 2 0 R >>".to_owned();
    let catalog = "<< /Type /Catalog /Pages 2 0 R >>".to_owned();
    let stream = |content: &str| {
        let length = content.len();
        format!("<< /Length {length} >>\nstream\n{content}\nendstream")
    };
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned();
    let hostile = [
        // A parent that is its own, in which a size is looked for without end.
        vec![catalog.clone(), pages.clone(), page("/Parent 2 0 R"), stream("BT ET"), font.clone()],
        // No size at all, which the library takes for granted.
        vec![catalog.clone(), pages.replace("/Parent 2 0 R", ""), page("/Parent 2 0 R"), stream("BT ET"), font.clone()],
        // A size of too few numbers.
        vec![catalog.clone(), pages.clone(), page("/MediaBox [0]"), stream("BT ET"), font.clone()],
        // A form that draws itself.
        vec![
            catalog.clone(),
            pages.clone(),
            "<< /Type /Page /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /XObject << /X 5 0 R >> >> >>".to_owned(),
            stream("/X Do"),
            "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 5 0 R >> >> /Length 5 >>\nstream\n/X Do\nendstream".to_owned(),
        ],
        // Lists in lists.
        vec![catalog.clone(), pages.clone(), page(&format!("/MediaBox {}", "[".repeat(200_000))), stream("BT ET"), font.clone()],
        // A font that does not exist.
        vec![catalog, pages, page("/MediaBox [0 0 9 9]"), stream("BT /F9 12 Tf (x) Tj ET"), font],
    ];
    for objects in hostile {
        let read = read_pdf(&written(&objects)).await;
        assert!(
            matches!(read, Err(ReadError::Unreadable(_) | ReadError::Ended)),
            "{read:?}"
        );
    }
}

#[tokio::test]
async fn a_page_of_elements_in_elements_harms_nothing_here() {
    for element in [
        "<div>",
        "<b>",
        "<table><tr><td>",
        "<ul><li>",
        "<blockquote>",
    ] {
        let page = format!("{}text", element.repeat(60_000));
        let reader = reader().with_time_max(Duration::from_secs(10));
        let url = "https://docs.example/".to_owned();
        let document = Document::Html { url, whole: true };
        let read = reader.read(&document, page.as_bytes()).await;
        // Whether it can be read depends on the library; this process continues either way.
        assert!(
            matches!(
                read,
                Ok(_) | Err(ReadError::Ended | ReadError::Unreadable(_) | ReadError::Timeout(_))
            ),
            "{read:?}"
        );
    }
}

#[tokio::test]
async fn a_document_that_takes_too_long_is_given_up() {
    let reader = reader().with_time_max(Duration::ZERO);
    let read = reader.read(&Document::Pdf, &pdf(&["x"])).await;
    assert!(matches!(read, Err(ReadError::Timeout(_))), "{read:?}");
}

#[tokio::test]
async fn a_document_larger_than_the_bound_is_not_handed_over() {
    let max = 32 << 20;
    let read = read_pdf(&vec![0; max + 1]).await;
    assert!(matches!(read, Err(ReadError::TooLarge)), "{read:?}");
    let read = read_pdf(&vec![0; max]).await;
    assert!(matches!(read, Err(ReadError::Unreadable(_))), "{read:?}");
}

#[tokio::test]
async fn a_program_without_the_hook_says_so() {
    let reader = Reader::new(SupervisorCommand::CurrentExe);
    let read = reader.read(&Document::Pdf, b"x").await;
    assert!(matches!(read, Err(ReadError::NoReader)), "{read:?}");
}
