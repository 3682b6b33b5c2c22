//! The typed layer on top of decode: session id, event type, number and status of each notification, the data raw.

use dsh_wire::frame::Frame;
use dsh_wire::wire::Notification;

use crate::corpus::Corpus;
use crate::decode;
use crate::measure::{Subject, take_turns};

pub fn typed(lines: &[&[u8]]) -> usize {
    let mut scratch = String::new();
    let mut sum = 0;
    for line in lines {
        let Frame::Notification { method, params } = Frame::decode(line, &mut scratch).expect("a frame") else {
            continue;
        };
        let notification = Notification::decode(method, params).expect("a notification");
        let session = notification.session_id().map_or(0, |id| id.get().len());
        let event = notification
            .event()
            .map_or(0, |event| event.kind.get().len() + event.seq as usize + event.data.get().len());
        sum += session + event;
    }
    sum
}

pub fn table(corpora: &[Corpus]) {
    println!("\ntyped notification on top of decode  (must +40 %, aim +15 %)");
    for corpus in corpora.iter().filter(|corpus| corpus.name != "requests") {
        let lines = corpus.lines();
        let mut subjects: Vec<Subject<'_>> =
            vec![("decode", Box::new(|| decode::dsh_wire(&lines))), ("typed", Box::new(|| typed(&lines)))];
        let times = take_turns(25, &mut subjects);
        println!("{:9} {:+5.0} %", corpus.name, (times.ratio("typed", "decode") - 1.0) * 100.0);
    }
}
