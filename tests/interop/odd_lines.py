#!/usr/bin/env python3
"""Odd lines for comparing `dsh-wire inspect --json` with the reference transport.

`LINES` holds (name, bytes) pairs; a "\\n" is written behind each. Some hold a
"\\n" themselves, where the fault is that one object stands on several lines.
`STREAMS` holds whole inputs whose start or end matters. `BIG` holds lines that
are too long to be fed to the reference one byte at a time.

Nothing here says what the right answer is: the reference does.

As a program it prints all lines as JSON, one row {"name": …, "b64": …} each.
"""
import base64
import json

LINES = []
BIG = []
STREAMS = []


def add(kind, *lines):
    """Lines that belong together; their name is the kind and the line's start."""
    for line in lines:
        raw = line if isinstance(line, bytes) else line.encode()
        LINES.append((f"{kind} {len(LINES)}: {raw[:60]!r}", raw))


# ------------------------------------------------------------------- the plain

add("plain",
    r'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}',
    r'{"jsonrpc":"2.0","id":"a","result":{"b":2}}',
    r'{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"no","data":[1]}}',
    r'{"jsonrpc":"2.0","method":"n","params":{"c":3}}',
    r'{"method":"n"}', r'{"id":1,"method":"m"}', r'{"id":1}',
    r'{"jsonrpc":"1.0","id":1,"method":"m"}', r'{"jsonrpc":2.0,"id":1,"method":"m"}',
    r'{"jsonrpc":null,"id":1,"method":"m"}', r'{"params":{"a":1},"method":"m","id":1,"jsonrpc":"2.0"}',
    r'{"x":[{"id":9,"method":"inner"}],"id":1,"y":{"id":2},"method":"m","z":null}')

# ---------------------------------------------------------------- ids, methods

IDS = [r'0', r'1', r'-1', r'-0', r'1.0', r'1.5', r'0.1', r'1e3', r'1E+2', r'1e-7', r'1e400', r'-1e400', r'1e-400',
       r'9007199254740993', r'12345678901234567890', r'123456789012345678901234567890', r'4.9e-324', r'0e99999999999',
       r'-0.0e-0', r'""', r'"0"', r'"a b"', r'"null"', r'"\u0000"', r'"\ud83d"', r'"\ud83d\ude00"', r'"\u4F60"', '"你😀"',
       r'"\/\b\f\n\r\t\"\\"', r'null', r'true', r'false', r'[]', r'[1]', r'{}', r'{"id":1}']
METHODS = [r'"m"', r'""', r'null', r'5', r'true', r'[]', r'["m"]', r'{}', r'{"method":"m"}']

add("id", *(f'{{"id":{i},"method":"m"}}' for i in IDS))
add("id of a response", *(f'{{"id":{i},"result":1}}' for i in IDS))
add("method", *(f'{{"id":1,"method":{m}}}' for m in METHODS))
add("method without id", *(f'{{"method":{m}}}' for m in METHODS))
add("method text",
    r'{"method":"\u0000"}', r'{"method":"\ud83d"}', r'{"method":"\uDE00\uD83D"}', r'{"method":"\ud83d\ude00"}',
    '{"method":"\\ud83d😀"}', r'{"method":"\u0061\/\"\\\n"}',
    '{"method":"\u2028\u2029\u0085\ufeff\x7f\uffff\U0010ffff"}',
    r'{"method":" session/prompt "}', r'{"method":"__proto__"}', r'{"method":"rpc.\u202ediscover"}')
add("params", *(f'{{"id":1,"method":"m","params":{p}}}' for p in (
    r'null', r'true', r'0', r'"s"', r'[]', r'[{"a":1}]', r'{}', r'{ "a" : [ 1 , 2 ] , "b" : { } }', r'{"":""}',
    r'{"a":1e400,"b":-0,"c":1.0,"d":123456789012345678901234567890,"e":0.1e1}',
    r'{"2":0,"1":0,"b":0,"a":0}', r'{"\ud83d":"\ude00"}', r'{"a":"\u0041\u00e9\u4f60"}')))
add("params of a notification", *(f'{{"method":"n","params":{p}}}' for p in (r'null', r'[1]', r'"s"', r'7',
    r'{"a":{}}')))
add("none of the three",
    r'{}', r'{"jsonrpc":"2.0"}', r'{"result":1}', r'{"error":{"code":1,"message":"m"}}', r'{"params":{}}',
    r'{"id":null,"result":1}', r'{"id":null,"error":{"code":-32700,"message":"parse error"}}', r'{"id":[],"result":1}',
    r'{"id":null,"method":null}', r'{"ID":1,"Method":"m"}', r'{"id ":1," method":"m"}', r'{"_id":1,"method_":"m"}',
    r'{"":1}', r'{"i":{"id":1,"method":"m"}}', r'{"params":{"id":1,"method":"m"}}')
add("more than one shape",
    r'{"id":1,"method":"m","result":1}', r'{"id":1,"method":"m","error":{"code":1}}',
    r'{"id":1,"method":"m","params":{},"result":1,"error":"x"}', r'{"id":1,"method":null,"result":1}',
    r'{"id":1,"method":5,"error":{"code":1,"message":"x"}}', r'{"method":"m","result":1}',
    r'{"method":"m","error":{"code":1}}', r'{"id":null,"method":"m","result":1}',
    r'{"id":1,"params":{"a":1},"result":2}')

# ------------------------------------------------------------------- responses

RESULTS = [None, r'null', r'0', r'false', r'""', r'"x"', r'[]', r'{}', r'[null]', r'{"error":1}']
ERRORS = [None, r'null', r'false', r'true', r'0', r'-0', r'0.0', r'0e5', r'1', r'1e-400', r'""', r'"x"', r'"\u0000"',
          r'[]', r'[1]', r'[{"code":1}]', r'{}', r'{"code":1}', r'{"message":"m"}', r'{"data":1}', r'{"result":1}']
for result in RESULTS[:7]:
    for error in ERRORS:
        pairs = (("id", '"r"'), ("result", result), ("error", error))
        members = [f'"{name}":{value}' for name, value in pairs if value is not None]
        add("response", "{" + ",".join(members) + "}")
add("result", *(f'{{"id":1,"result":{r}}}' for r in RESULTS[1:]))
add("error before result", r'{"error":{"code":1,"message":"m"},"result":1,"id":1}', r'{"error":null,"result":1,"id":1}')
add("error code", *(f'{{"id":1,"error":{{"code":{c},"message":"m"}}}}' for c in (
    r'0', r'-0', r'1.5', r'1e3', r'1e400', r'-32603', r'99999999999999999999', r'"1"', r'null', r'true', r'[]', r'[1]',
    r'{}')))
add("error message", *(f'{{"id":1,"error":{{"code":1,"message":{m}}}}}' for m in (
    r'""', r'null', r'5', r'false', r'[]', r'["m"]', r'{}', r'"\ud83d"', r'"a\u0000b"', '"\u2028 你"', r'"\u006d\/"')))
add("error data", *(f'{{"id":1,"error":{{"code":1,"message":"m","data":{d}}}}}' for d in (
    r'null', r'0', r'-0', r'1e400', r'""', r'[]', r'{}', r'{"data":{"data":1}}', r'"\ud83d"', r'[1, 2 ]')))
add("error members",
    r'{"id":1,"error":{"Code":1,"Message":"m"}}', r'{"id":1,"error":{"data":1,"message":"m","code":1,"more":2}}',
    r'{"id":1,"error":{"message":"a","message":"b"}}', r'{"id":1,"error":{"code":1,"code":"x"}}',
    r'{"id":1,"error":{"code":"x","code":1}}', r'{"id":1,"error":{"message":"a","m\u0065ssage":5}}',
    r'{"id":1,"error":{"\u0063ode":7,"d\u0061ta":8}}', r'{"id":1,"error":{"data":1,"data":null}}',
    r'{"id":1,"error":{"a":{"code":1},"b":{"message":"m"}}}', r'{"id":1,"error":{"__proto__":{"code":5}}}',
    r'{"id":1,"error":["code",1]}', '{"id":1,"error" : { "code" : 1 , "message" : "m" } }')

# --------------------------------------------------------------- keys, repeated

add("escaped keys",
    r'{"\u0069d":1,"method":"m"}', r'{"i\u0064":1,"\u006dethod":"m"}', r'{"\u0069\u0064":1,"meth\u006Fd":"m"}',
    r'{"id":1,"\u0072esult":2}', r'{"id":1,"err\u006Fr":{"code":1}}', r'{"id":1,"method":"m","p\u0061rams":{"a":1}}',
    r'{"\u0049d":1,"method":"m"}', r'{"i\/d":1,"method":"m"}', r'{"id\u0000":1,"method":"m"}',
    r'{"\u0000id":1,"method":"m"}',
    r'{"id\ud83d":1,"method":"m"}', r'{"\ud83did":1,"method":"m"}', r'{"\\u0069d":1,"method":"m"}',
    r'{"i\td":1,"method":"m"}',
    '{"ıd":1,"method":"m"}', '{"ｉd":1,"method":"m"}')
add("repeated keys",
    r'{"id":1,"id":2,"method":"m"}', r'{"id":1,"\u0069d":2,"method":"m"}', r'{"\u0069d":1,"id":2,"method":"m"}',
    r'{"id":1,"method":"m","id":null}', r'{"id":null,"method":"m","id":1}', r'{"id":1,"method":"m","id":[]}',
    r'{"id":"a","id":"a","id":"b","method":"m"}', r'{"id":1,"method":"a","method":"b"}',
    r'{"id":1,"method":"a","method":5}',
    r'{"id":1,"method":5,"method":"b"}', r'{"method":"a","m\u0065thod":null}',
    r'{"id":1,"method":"m","params":{"a":1},"params":{"b":2}}',
    r'{"id":1,"method":"m","params":{"a":1},"params":[2]}', r'{"id":1,"method":"m","params":[1],"params":{"b":2}}',
    r'{"id":1,"method":"m","params":{"a":1,"a":2,"\u0061":3}}', r'{"id":1,"result":1,"result":2}',
    r'{"id":1,"result":1,"result":null}', r'{"id":1,"error":{"code":1},"error":null,"result":3}',
    r'{"id":1,"error":null,"error":{"code":1}}', r'{"id":1,"error":{"code":1},"error":{"message":"m"}}',
    r'{"id":1,"error":{"code":1},"error":{}}', r'{"id":1,"error":"x","err\u006fr":[]}',
    r'{"id":1,"error":{"code":1},"result":1,"error":0}')
add("prototype",
    r'{"__proto__":{"id":1,"method":"m"}}', r'{"__proto__":null,"id":1,"method":"m"}',
    r'{"id":1,"__proto__":{"method":"m"}}',
    r'{"id":1,"method":"m","params":{"__proto__":{"a":1},"b":2}}', r'{"id":1,"result":{"__proto__":null}}',
    r'{"id":1,"method":"m","params":{"\u005f_proto__":1,"constructor":{"prototype":2}}}',
    r'{"constructor":1,"toString":2,"id":3,"hasOwnProperty":4}',
    r'{"id":1,"method":"m","params":{"then":1,"toJSON":2,"length":3}}')

# --------------------------------------------------------- no frame, or no JSON

add("no object",
    r'null', r'true', r'false', r'0', r'42', r'-1.5e3', r'""', r'"{}"', r'[]', r'[1,2]', r'[[]]',
    r'[{"id":1,"method":"m"}]',
    r'[{"id":1,"method":"m"},{"id":2,"method":"m"}]', r'["id",1,"method","m"]')
add("numbers", *(f'{{"id":{n},"method":"m"}}' for n in (
    r'-', r'+1', r'01', r'-01', r'00', r'1.', r'.5', r'-.5', r'1e', r'1e+', r'1E-', r'1.e1', r'1.5.5', r'1e1.5',
    r'0x10', r'0b1', r'0o7',
    r'1_000', r'1n', r'1f', r'NaN', r'-NaN', r'Infinity', r'-Infinity', r'--1', r'1-', r'- 1', r'1 2', r'１', r'0e',
    r'0e+0', r'0E-0', r'0.0',
    r'1e0001', r'0.00000000000000000000001')))
add("literals", *(f'{{"method":"m","x":{n}}}' for n in (
    r'nul', r'nulll', r'NULL', r'Null', r'None', r'True', r'tru', r'truefalse', r'undefined', r'', r"'s'", r'`s`',
    r'm', r'null ', r'null,', r'nu ll')))
add("strings", *(f'{{"method":"m","x":{n}}}' for n in (
    r'"\x41"', r'"\u"', r'"\u1"', r'"\u12"', r'"\u123"', r'"\u123g"', r'"\U0041"', r'"\u{41}"', r'"\u 041"',
    r'"\u+041"', r'"\a"', r'"\v"', r'"\0"',
    r'"\1"', r'''"\'"''', r'"\ "', '"\\\n"', r'"\"', r'"\\"', r'"\\\"', r'"\\\\"', r'"a', r'a"', r'""a""', r'"a" "b"',
    r'"\uD83D\uDE00"', r'"\ud83d\ud83d\ude00"',
    r'"\ude00\ud83d"', r'"\ud83d\u"', r'"\ud83d\x"', r'"\uFFFF\uFFFE\uFEFF"')))
add("control characters",
    *(b'{"method":"a%cb"}' % c for c in (0x00, 0x01, 0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x1b, 0x1e, 0x1f, 0x7f)),
    *(b'{"method":%c"m"}' % c for c in (0x00, 0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x1f, 0x7f)),
    b'{"a\tb":1,"method":"m"}', b'{"method":"m\r"}', b'{"me\rthod":"m"}')
add("structure",
    r'{', r'}', r'[', r']', r'{}}', r'{{}', r'{]', r'[}', r'{"id":1,"method":"m"', r'{"id":1,"method":"m"]',
    r'{"id":1,"method":"m"}}', r'{"id":1,"method":"m"}]',
    r'{"id":1,"method":"m",}', r'{,"id":1,"method":"m"}', r'{"id":1,,"method":"m"}', r'{"id":1 "method":"m"}',
    r'{"id":1;"method":"m"}', r'{"id"1,"method":"m"}',
    r'{"id"::1,"method":"m"}', r'{"id":,"method":"m"}', r'{"id","method":"m"}', r'{id:1,method:"m"}',
    r"{'id':1,'method':'m'}", r'{1:2,"method":"m"}',
    r'{null:2,"method":"m"}', r'{"method":"m","x":[1,]}', r'{"method":"m","x":[,1]}', r'{"method":"m","x":[1 2]}',
    r'{"method":"m","x":[1,2}}', r'{"method":"m","x":{"a"}}',
    r'{"method":"m","x":{"a":1,}}', r'{"method":"m","x":[}', r'{"method":"m","x":[1:2]}', r'({"method":"m"})',
    r'{"method":"m"};', r'{"method":"m"},', r',{"method":"m"}',
    r'{"method":"m" //c', r'{"method":"m"} // c', r'{/* c */"method":"m"}', r'# {"method":"m"}', r'{"method":"m"}#',
    r'{"method":"m"}null', r'null{"method":"m"}', r'{"method"', r'{"', r'"', r':', r',')
add("cut off", *(r'{"jsonrpc":"2.0","id":"a\u0041","method":"m","params":{"a":[1,true]}}'[:n] for n in range(3, 66, 3)))
add("several on a line",
    r'{"id":1,"method":"a"}{"id":2,"method":"b"}', r'{"id":1,"method":"a"} {"id":2,"method":"b"}',
    r'{"id":1,"method":"a"},{"id":2,"method":"b"}',
    '{"id":1,"method":"a"}\r{"id":2,"method":"b"}', '{"id":1,"method":"a"}\u2028{"id":2,"method":"b"}',
    '{"id":1,"method":"a"}\x0b{"id":2,"method":"b"}',
    '{"id":1,"method":"a"}\x0c{"id":2,"method":"b"}', '{"id":1,"method":"a"}\u0085{"id":2,"method":"b"}',
    '{"id":1,"method":"a"}\x00{"id":2,"method":"b"}')
add("one on several lines",
    '{"id":1,\n"method":"m"}', '{\n  "id": 1,\n  "method": "m"\n}', '{"id":1,"method":"a\nb"}',
    '[\n{"id":1,"method":"a"},\n{"id":2,"method":"b"}\n]',
    '{"id":1,"method":"m"\n}', '{"id":1,"method":"m","params":{\n}}', '"x"\n:1', '{"method":"a"}\n\n\n{"method":"b"}',
    '{"method":"a"}\n\r\n \n{"method":"b"}')
add("other framings",
    'Content-Length: 25', 'Content-Length: 25\r\n\r\n{"id":1,"method":"m"}',
    'Content-Length: 21\r\nContent-Type: application/json\r\n\r\n{"id":1,"method":"m"}\r',
    'Content-Length: 21\r\r{"id":1,"method":"m"}', 'content-length:21 {"id":1,"method":"m"}',
    '21:{"id":1,"method":"m"},', 'data: {"id":1,"method":"m"}', 'event: message',
    '\x1e{"id":1,"method":"m"}', '\x00\x00\x00\x15{"id":1,"method":"m"}', '{"id":1,"method":"m"}\x00', '0x15',
    '<message/>', '--- {"id":1,"method":"m"}')
add("text on stdout",
    'Listening on stdio', '{"level":"info","msg":"started"}', '[info] started', '{"level":"info","id":"boot"}',
    'Debugger listening on ws://127.0.0.1:9229/x',
    'warning: {"id":1,"method":"m"}', '\x1b[32m{"id":1,"method":"m"}\x1b[0m', '\x1b[0m', '> {"id":1,"method":"m"}',
    '{"id":1,"method":"m"} done', "Traceback (most recent call last):",
    '  at Object.<anonymous> (file.js:1:1)', 'Welcome 你好 😀', '^C', '\x07', '\x04')

# ------------------------------------------------------------ blanks and U+FEFF

FRAME = '{"id":1,"method":"m"}'
TRIMMED = ("\t\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
           "\u2028\u2029\u202f\u205f\u3000\ufeff")
KEPT = "\x00\x08\x1c\x1f\x7f\u0085\u00ad\u180e\u200b\u200c\u200d\u200e\u2060\ufffe\ufffd\u2800\u3164"
for blank in TRIMMED + KEPT:
    add(f"blank U+{ord(blank):04X}", blank + FRAME, FRAME + blank, '{' + blank + '"id":1,"method":"m"}',
        '{"id":1,"method":"m"' + blank + '}',
        '{"id":1,"method":"' + blank + '"}', blank)
add("blanks",
    "", " ", "\r", "\r\r", "\t \t", "\ufeff\ufeff", "\ufeff \u2028\r", TRIMMED, TRIMMED + FRAME + TRIMMED,
    "\ufeff" + FRAME + "\r", "\ufeff\ufeff" + FRAME,
    FRAME + "\r\r", FRAME + "\r", "\r" + FRAME, ' { "id" : 1 , "method" : "m" } ',
    '{\t"id"\t:\t1\t,\t"method"\t:\t"m"\t}', '{\r"id"\r:\r1\r,\r"method"\r:\r"m"\r}',
    '{"id":1\u00a0,"method":"m"}', '{"id":1,\ufeff"method":"m"}', '{"id":1,"\ufeffmethod":"m"}',
    b'\xef\xbb' + FRAME.encode(), b'\xef' + FRAME.encode(),
    b'\xbf' + FRAME.encode(), FRAME.encode() + b'\xef\xbb', b'\xc2' + FRAME.encode(),
    b'\xe2\x80' + FRAME.encode(), FRAME.encode() + b'\xe2\x80', b'\xc2\x85' + FRAME.encode(),
    FRAME.encode("utf-16-le"), FRAME.encode("utf-16-be"), FRAME.encode("utf-16"), FRAME.encode("utf-32"),
    b"\xff\xfe" + FRAME.encode(), b"\xfe\xff" + FRAME.encode())

# --------------------------------------------------------------- invalid UTF-8

BROKEN = [b"\xff", b"\xfe", b"\xff\xfe", b"\x80", b"\xbf", b"\x80\x80\x80", b"\xc0", b"\xc0\xaf", b"\xc0\x80",
          b"\xc1\xbf", b"\xc2", b"\xc3\x28", b"\xdf", b"\xe0\x80\x80",
          b"\xe0\x9f\xbf", b"\xe0\xa0", b"\xe2\x28\xa1", b"\xe2\x82", b"\xe2\x82\x28", b"\xe4\xbd",
          b"\xe4\xbd\xe4\xbd\xa0", b"\xed\xa0\x80", b"\xed\xbf\xbf",
          b"\xed\xa0\xbd\xed\xb8\x80", b"\xef\xbf", b"\xf0", b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf", b"\xf0\x9f",
          b"\xf0\x9f\x98", b"\xf0\x9f\x98\xf0\x9f\x98\x80", b"\xf0\x28\x8c\x28",
          b"\xf4\x8f\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf7\xbf\xbf\xbf", b"\xf8\x88\x80\x80\x80",
          b"\xfc\x84\x80\x80\x80\x80", b"\xc0\x8a", b"\xe2\x80\xc2\xa0"]
for bad in BROKEN:
    add("invalid UTF-8", b'{"id":"' + bad + b'","method":"' + bad + b'","params":{"' + bad + b'":"a' + bad + b'b"}}')
for bad in (b"\xff", b"\xe4\xbd", b"\xf0\x9f\x98", b"\xc2", b"\xed\xa0\x80", b"\xc2\xa0\xff"):
    add("invalid UTF-8 outside strings", bad + b'{"method":"m"}', b'{"method":"m"}' + bad,
        b'{' + bad + b'"method":"m"}', b'{"method"' + bad + b':"m"}', b'{"id":1' + bad + b',"method":"m"}',
        bad, b' ' + bad + b' ', b'{"method":"m"}\xc2\xa0' + bad, b'{"method":"m' + bad)
add("invalid UTF-8 in keys and escapes",
    b'{"id\xff":1,"method":"m"}', b'{"i\xffd":1,"method":"m"}', b'{"\xffid":1,"method":"m"}',
    b'{"id":1,"id\xff":2,"method":"m"}', b'{"method":"\\\xff"}', b'{"method":"\\u00\xff41"}',
    b'{"method":"\\u004\xff"}', b'{"method":"\\ud83d\xff"}', b'{"method":"\\ud83d\xed\xb8\x80"}',
    b'{"method":"\xed\xa0\xbd\\ude00"}', b'{"id":1,"error":{"message":"\xff","data":"\xe4\xbd"}}',
    b'{"id":1,"error":{"code\xff":1,"message\xc0":"m"}}', b'{"id":1,"result":"\xf0\x9f\x98"}',
    b'{"id":1,"result":{"\xff":1,"\xfe":2}}', b'{"method":"\xe4\xbd\\"}', b'{"method":"\xf0\x9f\x98\\\\"}')

# ------------------------------------------------------------- surrogate escapes

LONE = [r'\ud83d', r'\ude00', r'\uD83D', r'\ud83dx', r'x\ude00', r'\ude00\ud83d', r'\ud83d\ud83d', r'\ud83d\u0041',
        r'\ud83d\n', r'\ud83d\ud83d\ude00\ude00', '\\ud83d😀', '😀\\ude00', r'\udbff\udfff', r'\ud800\udc00']
for text in LONE:
    add("surrogates", f'{{"id":"{text}","method":"{text}","params":{{"{text}":"{text}"}}}}')
    add("surrogates in a response", f'{{"id":"{text}","result":["{text}"]}}',
        f'{{"id":1,"error":{{"code":1,"message":"{text}","data":"{text}"}}}}')

# ------------------------------------------------------------------- deep, long
# The trace prints values through JSON.stringify, which recurses: what is deeper
# than that can take stands where the trace does not print it.


def nested(depth, inner="", opening="[", closing="]"):
    return opening * depth + inner + closing * depth


for depth in (127, 128, 129, 200, 512):
    add(f"{depth} levels", '{"id":1,"method":"m","params":{"a":%s}}' % nested(depth),
        '{"id":1,"result":%s}' % nested(depth, "1", '{"a":', "}"),
        nested(depth), nested(depth, '{"id":1,"method":"m"}'), '{"id":%s,"method":"m"}' % nested(depth),
        '{"id":1,"method":"m","params":{"a":%s}' % nested(depth))
add("escapes", '{"method":"%s"}' % (r'\u0041' * 200), '{"method":"%s"}' % (r'\\' * 501),
    '{"method":"%s\\"}' % (r'\\' * 500), '{"method":"%s"x}' % (r'\"' * 300))
# Lengths around those at which a scanner that works on 8, 16, 32 or 64 bytes at a time changes over.
for length in (*range(1, 20), 30, 31, 32, 33, 62, 63, 64, 65, 127, 128, 129):
    pad = "p" * length
    add(f"string of {length}", f'{{"method":"{pad}"}}', f'{{"x":"{pad}\\"","method":"m"}}',
        f'{{"x":"{pad}\x01","method":"m"}}', f'{{"x":"{pad}\\u00e9é\x7f","method":"m"}}', f'{{"x":"{pad}\\',
        f'{{"x":{" " * length}1{" " * length},"method":"m"}}', f'{{"x":{"7" * length},"method":"m"}}')

BIG += [(name, text if isinstance(text, bytes) else text.encode()) for name, text in (
    ("2000 levels in params", '{"id":1,"method":"m","params":{"a":%s}}' % nested(2000)),
    ("100000 levels in params that are no object", '{"id":1,"method":"m","params":%s}' % nested(100000)),
    ("100000 levels in an unknown member", '{"id":1,"x":%s,"method":"m"}' % nested(100000)),
    ("100000 objects in an unknown member", '{"id":1,"x":%s,"method":"m"}' % nested(100000, "1", '{"a":', "}")),
    ("100000 levels as an id", '{"id":%s,"method":"m"}' % nested(100000)),
    ("100000 levels as a method", '{"id":1,"method":%s}' % nested(100000)),
    ("100000 levels as an error code", '{"id":1,"error":{"code":%s,"message":"m"}}' % nested(100000)),
    ("100000 levels in an error that is an array", '{"id":1,"error":%s,"result":1}' % nested(100000)),
    ("100000 levels at the top", nested(100000)),
    ("100000 levels never closed", "[" * 100000),
    ("100000 levels closed once too often", '{"method":"m","x":%s]}' % nested(100000)),
    ("100000 levels closed by the wrong bracket", '{"method":"m","x":%s}}' % ("[" * 100000 + "]" * 99999)),
    ("mixed brackets", '{"method":"m","x":%s}' % nested(30000, "null", '[{"a":', "}]")),
    ("string of 1 MiB", '{"id":1,"method":"m","params":{"a":"%s"}}' % ("x" * (1 << 20))),
    ("string of 1 MiB with escapes", '{"id":1,"result":"%s"}' % (r'\"\\\u0041\ud83d' * (1 << 16))),
    ("string of 1 MiB of Chinese", '{"id":1,"result":"%s"}' % ("你" * (1 << 18))),
    ("64 KiB of invalid UTF-8", b'{"id":1,"result":"%s"}' % (b"\xff\xe4\xbd" * 21845)),
    ("string of 1 MiB that does not end", '{"id":1,"method":"m","params":{"a":"%s' % ("x" * (1 << 20))),
    ("id of 100000 characters", '{"id":"%s","method":"m"}' % ("i" * 100000)),
    ("method of 100000 characters", '{"method":"%s"}' % ("m" * 100000)),
    ("number of 100000 digits", '{"id":1,"result":%s}' % ("7" * 100000)),
    ("fraction of 100000 digits", '{"id":0.%s,"method":"m"}' % ("7" * 100000)),
    ("key of 100000 characters", '{"%s":1,"method":"m"}' % ("k" * 100000)),
    ("10000 members", '{%s,"id":1,"method":"m"}' % ",".join('"k%d":%d' % (n, n) for n in range(10000))),
    ("10000 ids", '{%s,"method":"m"}' % ",".join('"id":%d' % n for n in range(10000))),
    ("100000 blanks around a frame", " " * 100000 + FRAME + "\u3000" * 100000),
    ("100000 blanks inside a frame", '{"id":1,%s"method":"m"}' % (" " * 100000)),
    ("100000 blanks and nothing else", "\ufeff" * 100000),
    ("200000 bytes that are no JSON", "spam " * 40000),
)]

# --------------------------------------------------------------- whole streams

STREAMS += [(name, text if isinstance(text, bytes) else text.encode()) for name, text in (
    ("empty", ""), ("one line end", "\n"), ("line ends only", "\n\n\r\n\n"), ("blank and no line end", "  "),
    ("U+FEFF at the start", "\ufeff" + FRAME + "\n"), ("U+FEFF twice at the start", "\ufeff\ufeff" + FRAME + "\n"),
    ("U+FEFF and nothing else", "\ufeff"),
    ("half a U+FEFF at the start", b"\xef\xbb" + FRAME.encode() + b"\n"),
    ("CRLF", (FRAME + "\r\n") * 3), ("CR only", (FRAME + "\r") * 3), ("LF CR", (FRAME + "\n\r") * 3),
    ("whole frame without line end", FRAME), ("whole frame with CR and no LF", FRAME + "\r"),
    ("frame, then frame without line end", FRAME + "\n" + FRAME),
    ("response without line end", '{"id":"a","result":1}'), ("half a frame without line end", FRAME + '\n{"id":1,"met'),
    ("half a character at the end", FRAME.encode() + b'\n{"method":"\xe4\xbd'),
    ("half a character as last line", FRAME.encode() + b"\n\xf0\x9f"),
    ("line end right after half a character", b'{"method":"\xe4\xbd\n' + FRAME.encode() + b"\n"),
    ("half a character before and after a line end", b'\xe4\xbd\n\xa0' + FRAME.encode() + b"\n"),
    ("UTF-16 throughout", (FRAME + "\n").encode("utf-16") * 2),
    ("NUL bytes", b"\0" * 100 + b"\n" + FRAME.encode() + b"\n"), ("100 frames in one go", (FRAME + "\n") * 100),
)]

if __name__ == "__main__":
    for name, raw in LINES + BIG:
        print(json.dumps({"name": name, "b64": base64.b64encode(raw).decode()}))
