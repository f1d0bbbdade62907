//! The fuzz targets' functions over mutated golden files, so that every run of the tests does a
//! little of what fuzzing does. The same mutations every time.

use crate::exercise;
use crate::golden::folder;
use nuncio_core::ProtocolVersion;
use serde_json::Value;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n.max(1) as u64).unwrap()
    }
}

const TOKENS: [&str; 16] = [
    "null",
    "-1",
    "1e400",
    "18446744073709551616",
    "\"\"",
    "[]",
    "{}",
    "[{}]",
    "\"\\ud800\"",
    "\"kind\":\"file\",",
    "\"task_id\":",
    "{\"data\":{\"data\":{}}}",
    "\\u0000",
    "\"_\":1,",
    "0.5",
    "true",
];

fn mutate_bytes(random: &mut Random, seed: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(4) {
            0 if !bytes.is_empty() => bytes[at] = random.next().to_le_bytes()[0],
            1 => bytes.truncate(at),
            2 => {
                let token = TOKENS[random.below(TOKENS.len())];
                let _ = bytes.splice(at..at, token.bytes()).count();
            }
            _ => {
                let end = at + random.below(bytes.len() - at);
                let copy = bytes[at..end].to_vec();
                let _ = bytes.splice(at..at, copy).count();
            }
        }
    }
    bytes
}

/// The node that a walk of `steps` nodes reaches.
fn node<'a>(value: &'a mut Value, steps: &mut usize) -> Option<&'a mut Value> {
    if *steps == 0 {
        return Some(value);
    }
    *steps -= 1;
    match value {
        Value::Object(map) => map.values_mut().find_map(|value| node(value, steps)),
        Value::Array(items) => items.iter_mut().find_map(|value| node(value, steps)),
        _ => None,
    }
}

/// Well-formed JSON of the wrong shape gets further than broken JSON.
fn mutate_tree(random: &mut Random, seed: &Value, other: &Value) -> Value {
    let mut value = seed.clone();
    let mut donor = other.clone();
    let graft = match random.below(3) {
        0 => node(&mut donor, &mut random.below(40)).map_or(Value::Null, Value::take),
        _ => TOKENS[random.below(TOKENS.len())]
            .parse()
            .unwrap_or(Value::Bool(false)),
    };
    if let Some(node) = node(&mut value, &mut random.below(60)) {
        match node {
            Value::Object(map) if random.below(2) == 0 => {
                let names = [
                    "kind",
                    "data",
                    "file",
                    "taskId",
                    "context_id",
                    "metadata",
                    "schemes",
                ];
                map.insert(names[random.below(names.len())].to_owned(), graft);
            }
            Value::Array(items) if random.below(2) == 0 => items.push(graft),
            node => *node = graft,
        }
    }
    value
}

#[test]
fn no_decoder_panics_on_mutated_golden_files() {
    let mut seeds = Vec::new();
    for version in ProtocolVersion::ALL {
        let mut paths: Vec<_> = std::fs::read_dir(folder(version))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        for path in paths {
            let text = std::fs::read_to_string(path).unwrap();
            let value: Value = text.parse().unwrap();
            let call =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{value}}}"#);
            seeds.push((text.into_bytes(), value));
            let value = call.parse().unwrap();
            seeds.push((call.into_bytes(), value));
        }
    }
    assert!(seeds.len() > 80, "golden files are missing");
    let mut random = Random(0x0a2a);
    for round in 0..40 {
        for (bytes, value) in &seeds {
            if round == 0 {
                exercise::all(bytes);
            }
            exercise::all(&mutate_bytes(&mut random, bytes));
            let other = &seeds[random.below(seeds.len())].1;
            let mutant = mutate_tree(&mut random, value, other);
            exercise::all(&serde_json::to_vec(&mutant).unwrap());
        }
    }
}
