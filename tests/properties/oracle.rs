//! An independent reading of the wire, written from the standards and from the reference transport's dispatch, as
//! plainly as possible: bytes to UTF-16 as a WHATWG decoder does, `trim` and `JSON.parse` by ECMA-262 over UTF-16
//! units, recursive descent, then the dispatch table. Slow, and not to be shared with the library in any line.

use std::ops::Range;

/// Levels of nesting beyond which the oracle does not judge, since it recurses.
pub(crate) const DEPTH: usize = 400;

/// A value and where it stands, in UTF-16 units.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number,
    String(Vec<u16>),
    Array(Vec<Node>),
    /// In order, duplicates included.
    Object(Vec<(Node, Node)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fail {
    /// No JSON text begins like the units up to and with this one; the length of the text where it only breaks off.
    At(usize),
    /// Not judged.
    TooDeep,
}

/// `JSON.parse`. `top` gets the names and values of top-level members as they are completed.
pub(crate) fn parse(units: &[u16], top: &mut dyn FnMut(&Node, Option<&Node>)) -> Result<Node, Fail> {
    let mut parser = Parser { units, at: 0, depth: 0, top };
    parser.white();
    let node = parser.value()?;
    parser.white();
    if parser.at < units.len() { Err(Fail::At(parser.at)) } else { Ok(node) }
}

struct Parser<'t> {
    units: &'t [u16],
    at: usize,
    depth: usize,
    top: &'t mut dyn FnMut(&Node, Option<&Node>),
}

impl Parser<'_> {
    /// The unit here as a character, if it is ASCII; NUL stands for others, since the grammar has no use for it.
    fn here(&self) -> Result<char, Fail> {
        let unit = *self.units.get(self.at).ok_or(Fail::At(self.at))?;
        Ok(if unit < 128 { char::from(unit as u8) } else { '\0' })
    }

    fn white(&mut self) {
        while let Ok('\t' | '\n' | '\r' | ' ') = self.here() {
            self.at += 1;
        }
    }

    fn expect(&mut self, c: char) -> Result<(), Fail> {
        if self.here()? != c {
            return Err(Fail::At(self.at));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self) -> Result<Node, Fail> {
        let start = self.at;
        let value = match self.here()? {
            '{' => self.object()?,
            '[' => self.array()?,
            '"' => Value::String(self.string()?),
            't' => self.word("true", Value::Bool(true))?,
            'f' => self.word("false", Value::Bool(false))?,
            'n' => self.word("null", Value::Null)?,
            '-' | '0'..='9' => self.number()?,
            _ => return Err(Fail::At(self.at)),
        };
        Ok(Node { span: start..self.at, value })
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Fail> {
        for c in word.chars() {
            self.expect(c)?;
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, Fail> {
        if self.here()? == '-' {
            self.at += 1;
        }
        if self.here()? == '0' {
            self.at += 1;
            if let Ok('0'..='9') = self.here() {
                return Err(Fail::At(self.at));
            }
        } else {
            self.digits()?;
        }
        if self.here() == Ok('.') {
            self.at += 1;
            self.digits()?;
        }
        if let Ok('e' | 'E') = self.here() {
            self.at += 1;
            if let '+' | '-' = self.here()? {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Value::Number)
    }

    fn digits(&mut self) -> Result<(), Fail> {
        let start = self.at;
        while let '0'..='9' = self.here().unwrap_or('x') {
            self.at += 1;
        }
        if self.at == start { Err(Fail::At(start)) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<Vec<u16>, Fail> {
        self.expect('"')?;
        let mut out = Vec::new();
        loop {
            let c = self.here()?;
            match c {
                '"' => break,
                '\\' => {
                    self.at += 1;
                    out.push(match self.here()? {
                        '"' => 0x22,
                        '\\' => 0x5c,
                        '/' => 0x2f,
                        'b' => 8,
                        'f' => 12,
                        'n' => 10,
                        'r' => 13,
                        't' => 9,
                        'u' => {
                            let mut unit = 0u16;
                            for _ in 0..4 {
                                self.at += 1;
                                let digit = self.here()?.to_digit(16).ok_or(Fail::At(self.at))?;
                                unit = unit * 16 + digit as u16;
                            }
                            unit
                        }
                        _ => return Err(Fail::At(self.at)),
                    });
                }
                _ if self.units[self.at] < 0x20 => return Err(Fail::At(self.at)),
                _ => out.push(self.units[self.at]),
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(out)
    }

    fn enter(&mut self) -> Result<(), Fail> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEPTH { Err(Fail::TooDeep) } else { Ok(()) }
    }

    fn array(&mut self) -> Result<Value, Fail> {
        self.enter()?;
        let mut elements = Vec::new();
        self.white();
        if self.here()? != ']' {
            loop {
                elements.push(self.value()?);
                self.white();
                match self.here()? {
                    ']' => break,
                    ',' => self.at += 1,
                    _ => return Err(Fail::At(self.at)),
                }
                self.white();
            }
        }
        self.at += 1;
        self.depth -= 1;
        Ok(Value::Array(elements))
    }

    fn object(&mut self) -> Result<Value, Fail> {
        self.enter()?;
        let mut members = Vec::new();
        self.white();
        if self.here()? != '}' {
            loop {
                let start = self.at;
                let name = self.string()?;
                let name = Node { span: start..self.at, value: Value::String(name) };
                if self.depth == 1 {
                    (self.top)(&name, None);
                }
                self.white();
                self.expect(':')?;
                self.white();
                let value = self.value()?;
                if self.depth == 1 {
                    (self.top)(&name, Some(&value));
                }
                members.push((name, value));
                self.white();
                match self.here()? {
                    '}' => break,
                    ',' => self.at += 1,
                    _ => return Err(Fail::At(self.at)),
                }
                self.white();
            }
        }
        self.at += 1;
        self.depth -= 1;
        Ok(Value::Object(members))
    }
}

impl Node {
    pub(crate) fn string(&self) -> Option<&[u16]> {
        if let Value::String(units) = &self.value { Some(units) } else { None }
    }

    /// As `object.name` in JavaScript after `JSON.parse`; nothing for other kinds.
    pub(crate) fn member(&self, name: &str) -> Option<&Node> {
        let Value::Object(members) = &self.value else { return None };
        let name: Vec<u16> = name.encode_utf16().collect();
        members.iter().rev().find(|(key, _)| key.string() == Some(&name)).map(|(_, value)| value)
    }
}

/// Bytes to UTF-16, by the algorithm of the Encoding standard (8.1.1, UTF-8 decoder), replacement mode, no BOM sniffing.
pub(crate) fn decode(bytes: &[u8]) -> Vec<u16> {
    let mut out = Vec::with_capacity(bytes.len());
    let (mut code, mut seen, mut needed, mut lower, mut upper) = (0u32, 0, 0, 0x80u8, 0xbfu8);
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        at += 1;
        if needed == 0 {
            match byte {
                0..=0x7f => out.push(byte.into()),
                0xc2..=0xdf => (needed, code) = (1, u32::from(byte & 0x1f)),
                0xe0..=0xef => {
                    (lower, upper) = (if byte == 0xe0 { 0xa0 } else { 0x80 }, if byte == 0xed { 0x9f } else { 0xbf });
                    (needed, code) = (2, u32::from(byte & 0xf));
                }
                0xf0..=0xf4 => {
                    (lower, upper) = (if byte == 0xf0 { 0x90 } else { 0x80 }, if byte == 0xf4 { 0x8f } else { 0xbf });
                    (needed, code) = (3, u32::from(byte & 7));
                }
                _ => out.push(0xfffd),
            }
            continue;
        }
        if byte < lower || byte > upper {
            (code, seen, needed, lower, upper) = (0, 0, 0, 0x80, 0xbf);
            at -= 1;
            out.push(0xfffd);
            continue;
        }
        (lower, upper) = (0x80, 0xbf);
        code = code << 6 | u32::from(byte & 0x3f);
        seen += 1;
        if seen == needed {
            if code > 0xffff {
                out.push((0xd800 + ((code - 0x10000) >> 10)) as u16);
                out.push((0xdc00 + ((code - 0x10000) & 0x3ff)) as u16);
            } else {
                out.push(code as u16);
            }
            (code, seen, needed) = (0, 0, 0);
        }
    }
    if needed > 0 {
        out.push(0xfffd);
    }
    out
}

/// `String.prototype.trim`: WhiteSpace and LineTerminator of ECMA-262. Returns what is left, and where it begins.
pub(crate) fn trim(units: &[u16]) -> (usize, &[u16]) {
    // TAB, VT, FF, ZWNBSP, category Zs; LF, CR, LS, PS.
    const WHITE: [u16; 25] = [
        0x9, 0xb, 0xc, 0xfeff, 0x20, 0xa0, 0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007,
        0x2008, 0x2009, 0x200a, 0x202f, 0x205f, 0x3000, 0xa, 0xd, 0x2028, 0x2029,
    ];
    let start = units.iter().position(|unit| !WHITE.contains(unit)).unwrap_or(units.len());
    let end = units.iter().rposition(|unit| !WHITE.contains(unit)).map_or(start, |last| last + 1);
    (start, &units[start..end])
}

/// What the reference transport makes of one line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Dispatch {
    /// Nothing is left after the trim.
    Blank,
    /// Not JSON, from this unit of the untrimmed line on.
    Syntax(usize),
    /// JSON that is no object.
    NotAnObject(Value),
    /// An object that nobody is told of.
    Ignored,
    Request {
        id: Node,
        method: Vec<u16>,
        params: Option<Node>,
    },
    Notification {
        method: Vec<u16>,
        params: Option<Node>,
    },
    Result {
        id: Node,
        result: Option<Node>,
    },
    Error {
        id: Node,
        raw: Node,
        code: Option<Node>,
        message: Option<Vec<u16>>,
        data: Option<Node>,
    },
    /// Not judged.
    TooDeep,
}

/// A line after decoding and trimming, to which the spans of its nodes belong, and its dispatch.
pub(crate) struct Judged {
    pub(crate) trimmed: Vec<u16>,
    pub(crate) dispatch: Dispatch,
}

impl Judged {
    /// The text of a node, as it stands in the repaired line.
    pub(crate) fn text(&self, node: &Node) -> String {
        String::from_utf16(&self.trimmed[node.span.clone()]).unwrap()
    }
}

pub(crate) fn judge(line: &[u8]) -> Judged {
    let units = decode(line);
    let (cut, trimmed) = trim(&units);
    let dispatch = dispatch(cut, trimmed);
    Judged { trimmed: trimmed.to_vec(), dispatch }
}

fn dispatch(cut: usize, trimmed: &[u16]) -> Dispatch {
    if trimmed.is_empty() {
        return Dispatch::Blank;
    }
    let frame = match parse(trimmed, &mut |_, _| {}) {
        Ok(frame) => frame,
        Err(Fail::At(at)) => return Dispatch::Syntax(cut + at),
        Err(Fail::TooDeep) => return Dispatch::TooDeep,
    };
    if !matches!(frame.value, Value::Object(_)) {
        return Dispatch::NotAnObject(frame.value);
    }
    let id = frame.member("id").filter(|id| matches!(id.value, Value::String(_) | Value::Number));
    let method = frame.member("method").and_then(Node::string).map(<[u16]>::to_vec);
    let params = frame.member("params").filter(|params| matches!(params.value, Value::Object(_))).cloned();
    match (id.cloned(), method) {
        (Some(id), Some(method)) => Dispatch::Request { id, method, params },
        (None, Some(method)) => Dispatch::Notification { method, params },
        (None, None) => Dispatch::Ignored,
        (Some(id), None) => match frame.member("error") {
            Some(raw) if matches!(raw.value, Value::Object(_) | Value::Array(_)) => Dispatch::Error {
                id,
                code: raw.member("code").filter(|code| code.value == Value::Number).cloned(),
                message: raw.member("message").and_then(Node::string).map(<[u16]>::to_vec),
                data: raw.member("data").cloned(),
                raw: raw.clone(),
            },
            _ => Dispatch::Result { id, result: frame.member("result").cloned() },
        },
    }
}

/// What a line over the limit begins like: the text of its id and, in a request, the method. Judged by the last complete
/// `id` and `method` among the members in its first bytes; `None` where the line ends in the middle of a `method`.
pub(crate) fn beginning(prefix: &[u8]) -> Option<(String, Option<Vec<u16>>)> {
    let units = decode(prefix);
    // Only its beginning can be trimmed: the line goes on.
    let (cut, _) = trim(&units);
    let is = |name: &Node, what: &str| name.string().is_some_and(|name| name.iter().copied().eq(what.encode_utf16()));
    let (mut id, mut method, mut begun) = (None, None, false);
    let text = &units[cut..];
    let end = parse(text, &mut |name, value| {
        begun = value.is_none() && is(name, "method");
        if let Some(value) = value.filter(|_| is(name, "id")) {
            id = Some(value.clone());
        }
        if let Some(value) = value.filter(|_| is(name, "method")) {
            method = Some(value.clone());
        }
    });
    let goes_on = end.is_ok() || end == Err(Fail::At(text.len()));
    let id = id.filter(|id| matches!(id.value, Value::String(_) | Value::Number)).filter(|_| goes_on && !begun)?;
    let id = String::from_utf16_lossy(&text[id.span]);
    Some((id, method.and_then(|method| method.string().map(<[u16]>::to_vec))))
}

/// `JSON.stringify` of a string (ECMA-262 QuoteJSONString).
pub(crate) fn quote(units: &[u16]) -> String {
    let mut out = String::from('"');
    for c in char::decode_utf16(units.iter().copied()) {
        match c {
            Ok('"') => out += "\\\"",
            Ok('\\') => out += "\\\\",
            Ok('\u{8}') => out += "\\b",
            Ok('\u{c}') => out += "\\f",
            Ok('\n') => out += "\\n",
            Ok('\r') => out += "\\r",
            Ok('\t') => out += "\\t",
            Ok(c) if c < ' ' => out += &format!("\\u{:04x}", u32::from(c)),
            Ok(c) => out.push(c),
            Err(lone) => out += &format!("\\u{:04x}", lone.unpaired_surrogate()),
        }
    }
    out.push('"');
    out
}
