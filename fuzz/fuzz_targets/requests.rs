#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nuncio_fuzz::exercise::requests(bytes));
