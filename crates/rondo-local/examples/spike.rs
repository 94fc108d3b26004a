use rondo_local::*;
use std::time::Instant;
fn main() {
    let t = Instant::now();
    let path = std::env::args().nth(1).unwrap();
    let mut e = CpuEngine::load(path.as_ref(), 8192).unwrap();
    println!("load {:?}", t.elapsed());
    let v = e.vocabulary().clone();
    let mut p = vec![v.special("<|im_start|>").unwrap()];
    p.extend(
        v.encode("system\nYou are a helpful assistant. Answer briefly.")
            .unwrap(),
    );
    p.push(v.special("<|im_end|>").unwrap());
    p.extend(v.encode("\n").unwrap());
    p.push(v.special("<|im_start|>").unwrap());
    p.extend(
        v.encode(&format!(
            "user\n{}What is the capital of France?",
            "The quick brown fox jumps over the lazy dog. ".repeat(20)
        ))
        .unwrap(),
    );
    p.push(v.special("<|im_end|>").unwrap());
    p.extend(v.encode("\n").unwrap());
    p.push(v.special("<|im_start|>").unwrap());
    p.extend(v.encode("assistant\n").unwrap());
    for round in 0..2 {
        e.truncate(0);
        let t = Instant::now();
        let mut l = vec![];
        for c in p.chunks(64) {
            l = e.extend(c).unwrap();
        }
        let el = t.elapsed();
        println!(
            "prefill {} in {:?} {:.1}/s",
            p.len(),
            el,
            p.len() as f64 / el.as_secs_f64()
        );
        let t = Instant::now();
        let mut out = vec![];
        for _ in 0..40 {
            let (best, _) = l
                .iter()
                .enumerate()
                .max_by(|a, b| a.1.total_cmp(b.1))
                .unwrap();
            if best as u32 == v.end() {
                break;
            }
            out.push(best as u32);
            l = e.extend(&[best as u32]).unwrap();
        }
        let el = t.elapsed();
        println!(
            "round {round} gen {} in {:?} {:.1}/s: {}",
            out.len(),
            el,
            out.len() as f64 / el.as_secs_f64(),
            String::from_utf8_lossy(&v.decode(&out))
        );
    }
    println!(
        "{}",
        std::fs::read_to_string("/proc/self/status")
            .unwrap()
            .lines()
            .filter(|l| l.starts_with("VmHWM") || l.starts_with("Rss"))
            .collect::<Vec<_>>()
            .join("\n")
    );
}
