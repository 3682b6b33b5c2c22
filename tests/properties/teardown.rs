//! The ladder that ends a runtime, whatever happens meanwhile: each rung once, in order, in bounded time.

use std::time::Duration;

use dsh_wire::client::{Graces, Rung, RungEnd, Step, Teardown};

use super::choices::Choices;

const RUNGS: [Rung; 4] = [Rung::RequestShutdown, Rung::CloseStdin, Rung::Terminate, Rung::Kill];

pub(crate) fn check(choices: &mut Choices<'_>) {
    let mut grace = || match choices.below(8) {
        0 => Duration::ZERO,
        1 => Duration::MAX,
        _ => Duration::from_millis(choices.byte().into()),
    };
    let mut graces = [grace(), grace(), grace(), grace()];
    let [shutdown, stdin, terminate, kill] = graces;
    let mut teardown = Teardown::new(Graces { shutdown, stdin, terminate, kill });
    let (mut now, mut exited, mut settled, mut begun) = (Duration::ZERO, false, None, Vec::new());
    let mut over = false;
    let mut asks = 0;
    while !over {
        // Without any more bytes, time alone brings it to its end.
        let idle = choices.is_empty();
        match if idle { 0 } else { choices.below(8) } {
            0..=3 => {}
            4 => now = now.saturating_add(Duration::from_millis(choices.byte().into())),
            5 if choices.below(4) == 0 => {
                teardown.exited();
                exited = true;
            }
            6 => {
                let answered = choices.flag();
                teardown.shutdown_settled(answered);
                if begun.len() == 1 {
                    settled = Some(if answered { RungEnd::Answered } else { RungEnd::Failed });
                }
            }
            7 => {
                let most = Duration::from_millis(choices.byte().into());
                teardown.hurry(most);
                graces[..3].iter_mut().for_each(|grace| *grace = most.min(*grace));
            }
            _ => {}
        }
        let ended: Option<(Duration, RungEnd)> = begun.last().and_then(|(rung, since): &(usize, Duration)| {
            let took = now - *since;
            let end = if exited {
                RungEnd::Exited
            } else if let Some(end) = settled.filter(|_| *rung == 0) {
                end
            } else if now >= since.saturating_add(graces[*rung]) {
                RungEnd::TimedOut
            } else {
                return None;
            };
            Some((took, end))
        });
        let reported = teardown.report().len();
        match teardown.step(now) {
            Step::Do(rung) => {
                assert!(!exited && rung == RUNGS[begun.len()], "{rung} after {begun:?}");
                assert!(begun.is_empty() || ended.is_some(), "{rung} too early");
                begun.push((begun.len(), now));
            }
            Step::WaitUntil(until) => {
                let (rung, since) = begun.last().unwrap();
                assert!(ended.is_none() && until == since.saturating_add(graces[*rung]) && until > now);
                assert_eq!(teardown.report().len(), reported);
                if idle {
                    now = until;
                    asks += 1;
                }
                continue;
            }
            Step::Finished => {
                assert!(exited || begun.len() == 4 && ended.is_some());
                over = true;
            }
        }
        if let Some((took, end)) = ended {
            let report = teardown.report().last().unwrap();
            assert_eq!((report.took, report.end, report.rung), (took, end, RUNGS[reported]));
        }
        assert!(asks <= 4, "each rung is waited for once");
    }
    assert_eq!(teardown.has_exited(), exited);
    assert_eq!(teardown.report().len(), begun.len());
    let report = teardown.report().to_vec();
    assert_eq!(teardown.step(now), Step::Finished);
    assert_eq!(teardown.report(), report);
}
