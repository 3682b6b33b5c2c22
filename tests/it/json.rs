//! What the scanner accepts, and how values are read.

use std::cmp::Ordering;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

use dsh_wire::json::{Json, JsonBuf, JsonString, Kind, SyntaxErrorKind, repair, trim};

#[track_caller]
fn accepts(text: &str) {
    assert_eq!(
        Json::new(text).map(|json| json.get().to_owned()),
        Ok(text.trim_matches([' ', '\t', '\r', '\n']).into())
    );
}

#[track_caller]
fn rejects(text: &str, at: usize, kind: SyntaxErrorKind) {
    let error = Json::new(text).expect_err(text);
    assert_eq!((error.at, error.kind), (at, kind), "{text}");
}

#[test]
fn values_of_the_grammar_are_accepted() {
    for text in [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1e400",
        "-1.5E+2",
        "0.1e-7",
        "123456789012345678901234567890",
        "\"\"",
        "\"\\u0000\\ud83d\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\u{7f}\u{2028}\u{feff}你好\"",
        "[]",
        "[ ]",
        "{}",
        "{ }",
        "[[],{}]",
        " \t\r\n[1 , 2]\n",
        r#"{"a":{"b":[1,{"c":null}]},"a":2}"#,
        r#"{"":"" , "x" : [ ] }"#,
    ] {
        accepts(text);
    }
}

/// Wherever it stands in the words and blocks that are looked at in one go.
#[test]
fn a_control_character_in_a_string_is_found_at_every_place() {
    for before in 0..80 {
        for control in ["\u{0}", "\t", "\u{1f}"] {
            let text = format!("\"{}{control}{}\"", "x".repeat(before), "x".repeat(80));
            rejects(&text, before + 1, SyntaxErrorKind::ControlInString);
            rejects(&format!("{{{text}:0}}"), before + 2, SyntaxErrorKind::ControlInString);
        }
    }
}

#[test]
fn the_first_fault_is_named() {
    use SyntaxErrorKind::*;
    for (text, at, kind) in [
        ("", 0, UnexpectedEnd),
        ("  ", 2, UnexpectedEnd),
        ("{", 1, UnexpectedEnd),
        ("[1,", 3, UnexpectedEnd),
        (r#"{"a":"#, 5, UnexpectedEnd),
        (r#"{"a""#, 4, UnexpectedEnd),
        ("\"ab", 3, UnexpectedEnd),
        ("\"ab\\", 4, UnexpectedEnd),
        ("\"\\u12", 5, UnexpectedEnd),
        ("tru", 3, UnexpectedEnd),
        ("[nul]", 4, ExpectedValue),
        ("falsy", 4, ExpectedValue),
        ("NaN", 0, ExpectedValue),
        ("+1", 0, ExpectedValue),
        (".5", 0, ExpectedValue),
        ("'a'", 0, ExpectedValue),
        ("[1,]", 3, ExpectedValue),
        ("[,1]", 1, ExpectedValue),
        ("}", 0, ExpectedValue),
        ("\u{feff}1", 0, ExpectedValue),
        ("// c", 0, ExpectedValue),
        (r#"{"a":1,}"#, 7, ExpectedName),
        ("{1:2}", 1, ExpectedName),
        ("{,}", 1, ExpectedName),
        (r#"{"a" 1}"#, 5, ExpectedColon),
        (r#"{"a":1 "b":2}"#, 7, ExpectedCommaOrEnd),
        ("[1 2]", 3, ExpectedCommaOrEnd),
        ("[1}", 2, ExpectedCommaOrEnd),
        (r#"{"a":1]"#, 6, ExpectedCommaOrEnd),
        ("\"a\tb\"", 2, ControlInString),
        ("\"a\u{0}b\"", 2, ControlInString),
        ("\"aaaaaaaaaaaaaaaa\u{1f}\"", 17, ControlInString),
        (r#""\x""#, 2, BadEscape),
        (r#""\u12g4""#, 5, BadEscape),
        ("01", 1, BadNumber),
        ("-01", 2, BadNumber),
        ("-", 1, UnexpectedEnd),
        ("1.", 2, UnexpectedEnd),
        ("-x", 1, BadNumber),
        ("1.e5", 2, BadNumber),
        ("1e", 2, UnexpectedEnd),
        ("1e+", 3, UnexpectedEnd),
        ("0x1", 1, TrailingText),
        ("{}{}", 2, TrailingText),
        ("{} {}", 3, TrailingText),
        ("1 \u{a0}", 2, TrailingText),
    ] {
        rejects(text, at, kind);
    }
}

#[test]
fn nesting_is_bounded_by_memory_only() {
    for depth in [63, 64, 65, 128, 129, 200, 100_000] {
        let text = "[".repeat(depth) + &"]".repeat(depth);
        accepts(&text);
        // Objects and arrays alternate in a pattern that is no period of a word.
        let mut text = String::new();
        for level in 0..depth {
            text += if level % 3 == 0 { "{\"k\":" } else { "[" };
        }
        text += "1";
        for level in (0..depth).rev() {
            text += if level % 3 == 0 { "}" } else { "]" };
        }
        accepts(&text);
        let wrong = text.replacen("1]", "1}", 1).replacen("1}", if (depth - 1) % 3 == 0 { "1]" } else { "1}" }, 1);
        assert!(Json::new(&wrong).is_err());
        assert!(Json::new(&text[..text.len() - 1]).is_err());
        let json = Json::new(&text).unwrap();
        assert_eq!(json.members().count(), 1);
        assert_eq!(json.member("k").map(|inner| inner.get().len()), Some(text.len() - 6));
    }
}

#[test]
fn the_last_duplicate_wins_however_its_name_is_written() {
    let json = Json::new(r#"{"id":1,"\u0069d":2,"i\u0064":3,"ID":4}"#).unwrap();
    assert_eq!(json.member("id").and_then(Json::as_u64), Some(3));
    assert_eq!(json.members().count(), 4);
    assert_eq!(json.member("nothing"), None);
    assert_eq!(Json::new("[1]").unwrap().member("id"), None);
}

#[test]
fn members_and_elements_keep_their_text() {
    let json = Json::new("{ \"a\" : [ 1 , \"}\\\"]\" , { } ] ,\t\"b\":-0.0 , \"c\\n\" :null}").unwrap();
    let members: Vec<_> = json.members().map(|(name, value)| (name.get(), value.get())).collect();
    assert_eq!(members, [("\"a\"", "[ 1 , \"}\\\"]\" , { } ]"), ("\"b\"", "-0.0"), ("\"c\\n\"", "null")]);
    let elements: Vec<_> = json.member("a").unwrap().elements().map(Json::get).collect();
    assert_eq!(elements, ["1", "\"}\\\"]\"", "{ }"]);
    assert_eq!(json.elements().count(), 0);
    assert_ne!(json.member("a"), json.member("b"));
    let kinds: Vec<_> = Json::new("[null,true,1,\"\",[],{}]").unwrap().elements().map(Json::kind).collect();
    assert_eq!(kinds, [Kind::Null, Kind::Bool, Kind::Number, Kind::String, Kind::Array, Kind::Object]);
    let names = ["null", "a boolean", "a number", "a string", "an array", "an object"];
    assert!(kinds.iter().map(ToString::to_string).eq(names), "{kinds:?}");
}

#[test]
fn numbers_are_read_as_javascript_reads_them() {
    let number = |text| Json::new(text).unwrap();
    for (text, as_u64, as_i64, as_f64) in [
        ("0", Some(0), Some(0), 0.0),
        ("-0", Some(0), Some(0), -0.0),
        ("1.0", Some(1), Some(1), 1.0),
        ("1e3", Some(1000), Some(1000), 1000.0),
        ("-7", None, Some(-7), -7.0),
        ("1.5", None, None, 1.5),
        ("18446744073709551615", Some(u64::MAX), None, 18_446_744_073_709_551_615.0),
        ("18446744073709551616", None, None, 18_446_744_073_709_551_616.0),
        ("-9223372036854775808", None, Some(i64::MIN), -9_223_372_036_854_775_808.0),
        ("9007199254740993", Some(9_007_199_254_740_993), Some(9_007_199_254_740_993), 9_007_199_254_740_992.0),
        ("1e400", None, None, f64::INFINITY),
        ("-1e400", None, None, f64::NEG_INFINITY),
        ("5e-324", None, None, 5e-324),
    ] {
        assert_eq!(number(text).as_u64(), as_u64, "{text}");
        assert_eq!(number(text).as_i64(), as_i64, "{text}");
        assert_eq!(number(text).as_f64(), Some(as_f64), "{text}");
    }
    assert_eq!(number("\"1\"").as_u64(), None);
    assert_eq!(number("null").as_f64(), None);
}

#[test]
fn strings_compare_by_what_they_say() {
    let string = |text| Json::new(text).unwrap().as_str().unwrap();
    #[track_caller]
    fn check(text: &str, lossy: &str, canonical: &str) {
        let string = Json::new(text).unwrap().as_str().unwrap();
        assert_eq!(string.to_string_lossy(), lossy);
        assert_eq!(string.to_buf().as_json_str().get(), canonical);
        assert_eq!(string.to_buf().as_json_str(), string);
    }
    check(r#""plain""#, "plain", r#""plain""#);
    check(r#""\u4f60\/\u000a\u001F\b""#, "你/\n\u{1f}\u{8}", "\"你/\\n\\u001f\\b\"");
    check(r#""\ud83d\ude00""#, "😀", "\"😀\"");
    check(r#""\uD83D""#, "\u{fffd}", r#""\ud83d""#);
    check(r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}", r#""\ude00\ud83d""#);
    check("\"\\ud83d\u{1f600}\"", "\u{fffd}😀", "\"\\ud83d😀\"");
    check(r#""\ud83d\u0041""#, "\u{fffd}A", r#""\ud83dA""#);
    check(r#""\ud83d\\ude00""#, "\u{fffd}\\ude00", r#""\ud83d\\ude00""#);
    check(r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀", "\"\\ud83d😀\"");
    assert_eq!(string(r#""\u0061b""#), string(r#""ab""#));
    assert_eq!(string(r#""\u0061b""#), "ab");
    assert_ne!(string(r#""\\u0061""#), "a");
    assert_eq!(string(r#""\\""#), "\\");
    assert_ne!(string(r#""\ud83d""#), string("\"\u{fffd}\""));
    assert_ne!(string(r#""\ud83d""#), "\u{fffd}");
    assert!(string(r#""a""#) < string(r#""\u0062""#));
    assert_eq!(JsonString::from("a\"\\\n\u{1}é").as_json_str().get(), "\"a\\\"\\\\\\n\\u0001é\"");
}

#[test]
fn values_are_sorted_hashed_and_shown_by_what_they_hold() {
    fn hash(value: impl Hash) -> u64 {
        BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
    }
    let [one, two] = ["[1]", "[2]"].map(|text| Json::new(text).unwrap());
    assert!(one < two && one.partial_cmp(&one) == Some(Ordering::Equal));
    assert_ne!(hash(one), hash(two));
    assert_eq!(format!("{one}{}", two.to_buf().as_json()), "[1][2]");
    let [a, b] = [r#""a""#, r#""\u0062""#].map(|text| Json::new(text).unwrap().as_str().unwrap());
    assert_ne!(hash(a), hash(b));
    assert_eq!(format!("{a:>3}{b}"), "  ab");
    let owned = [JsonString::from(b), "b".to_owned().into(), (&"b".to_owned()).into(), "b".into()];
    assert!(owned.iter().all(|same| *same == owned[0] && same.to_string() == "b" && same.as_json_str() == b));
}

#[test]
fn what_is_written_is_what_was_read() {
    let text = r#"{"a":"cut \ud83d","n":1.0,"a":[1e400]}"#;
    let json = Json::new(text).unwrap();
    assert_eq!(serde_json::to_string(&json).unwrap(), text);
    assert_eq!(serde_json::to_string(&[json.to_buf()]).unwrap(), format!("[{text}]"));
    let key = json.member("a").unwrap();
    assert_eq!(serde_json::to_string(&key).unwrap(), "[1e400]");
    assert_eq!(serde_json::to_string(&JsonString::from("é\n")).unwrap(), "\"é\\n\"");
    assert_eq!(JsonBuf::from_serialize(&("x", 1)).unwrap().as_json().get(), r#"["x",1]"#);
    assert_eq!(json.member("n").unwrap().parse::<f32>().unwrap(), 1.0);
}

#[test]
fn javascript_trims_what_it_trims() {
    assert_eq!(trim("\u{feff}\u{a0}\u{2028}\u{3000}\u{b}\u{c} \tx\u{85}\u{205f}\u{1680}\u{2009}"), "x\u{85}");
    assert_eq!(trim("\u{85}x\u{200b}\u{180e}"), "\u{85}x\u{200b}\u{180e}");
}

#[test]
fn broken_utf8_is_repaired_as_the_whatwg_decoder_does() {
    for (bytes, replacements) in [
        (&b"\xff\xfe"[..], 2),
        (b"\xe4\xbd", 1),
        (b"\xc0\xaf", 2),
        (b"\xed\xa0\xbd\xed\xb8\x80", 6),
        (b"\xf0\x9f\x98", 1),
        (b"\xf4\x90\x80\x80", 4),
        (b"\x80", 1),
        (b"\xf8\x88\x80\x80\x80", 5),
    ] {
        let mut scratch = String::from("left from before");
        let bytes = [b"a", bytes, b"z"].concat();
        assert_eq!(repair(&bytes, &mut scratch), format!("a{}z", "\u{fffd}".repeat(replacements)), "{bytes:?}");
    }
    let mut scratch = String::new();
    assert_eq!(repair("whole 你".as_bytes(), &mut scratch), "whole 你");
}
