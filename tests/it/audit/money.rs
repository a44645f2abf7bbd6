//! Whose cents are where: the ledgers add up, nothing is spent that was not there, and what happened is told.
use super::{
    books::{Account, Posting, Topup, Whole},
    check::Evidence,
    facts::{Event, Facts, by},
    falls::falls,
};
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::Write,
};

/// A tenant and an env.
pub type Owner<'a> = (&'a str, &'a str);

/// An entry of a ledger, put together from its two postings.
pub struct Entry<'a> {
    pub n: i64,
    pub from: &'a str,
    pub to: &'a str,
    pub cents: i64,
    pub whole: &'a Whole<'a>,
}

impl Entry<'_> {
    /// What it adds to the balance, and to what is held of it.
    fn adds(&self) -> (i64, i64) {
        let sign = |is: &dyn Fn(&str) -> bool| i64::from(is(self.to)) - i64::from(is(self.from));
        let tenants = sign(&|book| matches!(book, "available" | "held"));
        (tenants * self.cents, sign(&|book| book == "held") * self.cents)
    }
}

/// The ledgers in their order; what is no entry is said instead.
pub fn ledgers<'r>(facts: &'r Facts<'_>) -> (BTreeMap<Owner<'r>, Vec<Entry<'r>>>, Vec<String>) {
    let mut found = Vec::new();
    let mut ledgers: BTreeMap<Owner<'r>, Vec<Entry<'r>>> = BTreeMap::new();
    for ((tenant, env, n), sides) in by(&facts.postings, |posting| {
        Some((posting.tenant, posting.env, posting.n))
    }) {
        match entry(n, &sides) {
            Some(entry) => ledgers.entry((tenant, env)).or_default().push(entry),
            None => found.push(format!(
                "entry {n} of {tenant} in {env} is not two postings that sum to zero"
            )),
        }
    }
    ledgers
        .values_mut()
        .for_each(|entries| entries.sort_by_key(|entry| entry.n));
    (ledgers, found)
}

fn entry<'r>(n: i64, sides: &[&'r Posting<'_>]) -> Option<Entry<'r>> {
    let [one, other] = sides else { return None };
    let (from, to) = if one.cents < 0 { (one, other) } else { (other, one) };
    let fits = to.cents > 0 && from.cents == -to.cents && from.book != to.book && from.whole == to.whole;
    fits.then_some(Entry {
        n,
        from: from.book,
        to: to.book,
        cents: to.cents,
        whole: &to.whole,
    })
}

/// The hash of an entry, as it must follow from the one before.
pub fn hash(before: &str, (tenant, env): Owner<'_>, entry: &Entry<'_>) -> String {
    let capital = |word: &str| {
        let (first, rest) = word.split_at_checked(1).unwrap_or_default();
        first.to_uppercase() + rest
    };
    let Entry {
        n,
        from,
        to,
        cents,
        whole,
    } = entry;
    let line = format!(
        "{before}\n{tenant}\n{env}\n{n}\n{}\n{}\n{}\n{}\n{cents}\n{}\n{}\n{}\n{}\n{}",
        whole.id,
        capital(whole.kind),
        capital(from),
        capital(to),
        whole.subject.unwrap_or_default(),
        whole.balance_after,
        whole.held_after,
        whole.created_at.unwrap_or_default(),
        whole.note.unwrap_or_default(),
    );
    Sha256::digest(line).iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// I12: "sum of cents per txn = 0; balance = sum; no row changed (hash chain)".
pub fn the_books_add_up(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let (ledgers, mut found) = ledgers(facts);
    let mut ids = HashSet::new();
    let accounts: HashMap<Owner<'_>, &Account<'_>> = facts
        .accounts
        .iter()
        .map(|account| ((account.tenant, account.env), account))
        .collect();
    for (owner, entries) in &ledgers {
        let (tenant, env) = owner;
        let (mut balance, mut held, mut before) = (0, 0, "");
        for (at, entry) in entries.iter().enumerate() {
            let n = entry.n;
            if n != at as i64 + 1 {
                found.push(format!("{tenant} in {env}: entry {n} stands where {} must be", at + 1));
            }
            if entry.whole.hash != hash(before, *owner, entry) {
                found.push(format!(
                    "{tenant} in {env}: entry {n} does not follow from the one before"
                ));
            }
            before = entry.whole.hash;
            let (more, more_held) = entry.adds();
            (balance, held) = (balance + more, held + more_held);
            if (entry.whole.balance_after, entry.whole.held_after) != (balance, held) {
                let (said, said_held) = (entry.whole.balance_after, entry.whole.held_after);
                found.push(format!(
                    "{tenant} in {env}: after entry {n} are {balance} and {held} held, it says {said} and {said_held}"
                ));
            }
            if !ids.insert(entry.whole.id) {
                found.push(format!("{tenant} in {env}: the id of entry {n} is not unique"));
            }
        }
        let Some(account) = accounts.get(owner) else {
            found.push(format!("{tenant} has entries in {env}, and no account"));
            continue;
        };
        let stored = (account.balance, account.held, account.entries, account.last_hash);
        if stored != (balance, held, entries.len() as i64, before) {
            found.push(format!(
                "the account of {tenant} in {env} is {stored:?}, its {} entries say {balance} and {held} held",
                entries.len()
            ));
        }
    }
    for account in facts.accounts.iter().filter(|account| account.entries != 0) {
        if !ledgers.contains_key(&(account.tenant, account.env)) {
            found.push(format!(
                "the account of {} in {} has no entries",
                account.tenant, account.env
            ));
        }
    }
    found
}

/// Something that is paid for: a call or a message.
struct Bought<'a> {
    what: &'static str,
    id: &'a str,
    owner: Owner<'a>,
    /// What was set aside for it when it was sent off.
    hold: i64,
    cost: i64,
    is_over: bool,
    /// What it says to be set aside now; `None`: it does not say.
    open: Option<i64>,
    /// Of a call: when it was answered, since when a second leg costs too, and the price of a minute. While it lasts more is set
    /// aside for it.
    lasts: Option<(Option<i64>, Option<i64>, i64)>,
}

fn all_bought<'r>(facts: &'r Facts<'_>) -> Vec<Bought<'r>> {
    let calls = facts.sessions.iter().map(|session| Bought {
        what: "session",
        id: session.id,
        owner: (session.tenant, session.env),
        hold: session.hold,
        cost: session.cost,
        is_over: session.is_over(),
        open: None,
        lasts: Some((session.started_at, session.bridged_at, session.price)),
    });
    let messages = facts.messages.iter().map(|message| Bought {
        what: "message",
        id: message.id,
        owner: (message.tenant, message.env),
        hold: if message.attempts > 0 { message.price } else { 0 },
        cost: message.cost,
        is_over: message.settled,
        open: Some(message.held),
        lasts: None,
    });
    calls.chain(messages).collect()
}

/// I12: "at most 1 hold per session; terminal => hold posted xor voided, once; posted = session.cost = event's
/// `actual_cost_cents`", and the same of messages. A call's hold grows while it lasts, each time that it is used up.
pub fn holds_close_once(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let (ledgers, mut found) = ledgers(facts);
    let bought = all_bought(facts);
    let known: HashSet<(&str, Owner<'_>)> = bought.iter().map(|bought| (bought.id, bought.owner)).collect();
    let mut moved: HashMap<&str, Vec<&Entry<'_>>> = HashMap::new();
    for (owner, entries) in &ledgers {
        for entry in entries
            .iter()
            .filter(|entry| matches!(entry.whole.kind, "hold" | "charge" | "release"))
        {
            let subject = entry.whole.subject.unwrap_or_default();
            if !known.contains(&(subject, *owner)) && !facts.was_let_go(owner.0, subject) {
                let (kind, n) = (entry.whole.kind, entry.n);
                found.push(format!(
                    "a {kind}, entry {n} of {owner:?}, is about nothing of theirs: {subject}"
                ));
            }
            moved.entry(subject).or_default().push(entry);
        }
    }
    for bought in &bought {
        closes(bought, moved.get(bought.id).map_or(&[][..], Vec::as_slice), &mut found);
    }
    for event in &facts.events {
        costs(facts, event, &mut found);
    }
    found
}

fn closes(bought: &Bought<'_>, entries: &[&Entry<'_>], found: &mut Vec<String>) {
    let Bought { what, id, cost, .. } = bought;
    let of = |kind: &str, from: &str| {
        let those = entries
            .iter()
            .filter(|entry| entry.whole.kind == kind && entry.from == from);
        let cents: Vec<i64> = those.map(|entry| entry.cents).collect();
        (cents.len(), cents.iter().sum::<i64>())
    };
    let (holds, held) = of("hold", "available");
    let (covered, beyond, released) = (of("charge", "held"), of("charge", "available"), of("release", "held"));
    if !holds_are_due(bought, entries) || covered.0 > 1 || beyond.0 > 1 || released.0 > 1 {
        found.push(format!(
            "{what} {id} is set aside for, charged or given back more than once"
        ));
    }
    if bought.hold != held {
        found.push(format!(
            "{what} {id} says that {} are set aside, the ledger {held}",
            bought.hold
        ));
    }
    if entries
        .first()
        .is_some_and(|first| holds > 0 && first.whole.kind != "hold")
    {
        found.push(format!("{what} {id} is charged before its hold"));
    }
    let left = held - covered.1 - released.1;
    if bought.open.is_some_and(|open| open != left) {
        found.push(format!(
            "{what} {id} says that {:?} are still set aside, the ledger {left}",
            bought.open
        ));
    }
    if !bought.is_over {
        if covered.0 + beyond.0 + released.0 > 0 {
            found.push(format!("{what} {id} is not over, and its hold is closed"));
        }
    } else if left != 0 {
        found.push(format!("{what} {id} is over, and of its hold {left} are left"));
    } else if (covered.1, beyond.1) != ((*cost).min(held), (cost - held).max(0)) {
        found.push(format!(
            "{what} {id} costs {cost}, and {} were charged",
            covered.1 + beyond.1
        ));
    }
}

/// Milliseconds that the clock may have been put back in between.
const CLOCK_SLACK: i64 = 50;

/// Is each hold after the first one of a call that has used up what was set aside for it before, and is not settled yet?
fn holds_are_due(bought: &Bought<'_>, entries: &[&Entry<'_>]) -> bool {
    let (mut held, mut settled) = (0, false);
    for entry in entries {
        if entry.whole.kind != "hold" {
            settled = true;
            continue;
        }
        let is_due = match bought.lasts {
            _ if held == 0 => true,
            Some((Some(answered), bridged, price)) if !settled => {
                let at = entry.whole.created_at.unwrap_or(answered);
                let twice = bridged.map_or(0, |bridged| (at - bridged).max(0));
                let lasted = at - answered + twice + CLOCK_SLACK;
                lasted * price >= held * 60_000
            }
            Some(_) | None => false,
        };
        if !is_due {
            return false;
        }
        held += entry.cents;
    }
    true
}

/// An end says what it has cost.
fn costs(facts: &Facts<'_>, event: &Event<'_>, found: &mut Vec<String>) {
    let subject = event.subject.unwrap_or_default();
    let stored: Vec<i64> = match event.kind {
        "session.ended" | "session.failed" => facts.session(subject).into_iter().map(|row| row.cost).collect(),
        "campaign.contact_completed" | "campaign.contact_failed" => match event.session {
            Some(session) => facts.session(session).into_iter().map(|row| row.cost).collect(),
            None => {
                let messages = facts.messages.iter().filter(|message| message.contact == event.subject);
                // Nobody was written to: it costs nothing.
                messages.map(|message| message.cost).chain([0]).collect()
            }
        },
        _ => return,
    };
    if !event.cost.is_some_and(|told| stored.contains(&told)) {
        let told = event.cost;
        found.push(format!(
            "{} of {subject} tells of {told:?} cents, and {stored:?} are stored",
            event.kind
        ));
    }
}

/// I12: "a payment id once; postings of env test only on test accounts"; a top-up that succeeded is in its owner's ledger,
/// once, and what was paid back of it has left it.
pub fn payments_count_once(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let (ledgers, mut found) = ledgers(facts);
    let mut payments: HashSet<&str> = HashSet::new();
    let mut paid: HashMap<&str, Vec<(Owner<'_>, &Entry<'_>)>> = HashMap::new();
    for (owner, entries) in &ledgers {
        for entry in entries
            .iter()
            .filter(|entry| matches!(entry.whole.kind, "topup" | "refund" | "refund_failed"))
        {
            if entry.whole.kind == "topup" && !payments.insert(entry.whole.note.unwrap_or_default()) {
                found.push(format!("the payment of entry {} of {owner:?} is booked twice", entry.n));
            }
            let subject = entry.whole.subject.unwrap_or_default();
            paid.entry(subject).or_default().push((*owner, entry));
        }
    }
    for topup in &facts.topups {
        let Topup {
            id, tenant, env, cents, ..
        } = topup;
        if (topup.processor == "sandbox") != (*env == "test") {
            found.push(format!("top-up {id} of {env} is paid by {}", topup.processor));
        }
        let entries = paid.remove(id).unwrap_or_default();
        if entries.iter().any(|(owner, _)| *owner != (*tenant, *env)) {
            found.push(format!("top-up {id} is booked on another account"));
        }
        let booked: Vec<_> = entries
            .iter()
            .map(|(_, entry)| entry)
            .filter(|entry| entry.whole.kind == "topup")
            .collect();
        let fits = match &booked[..] {
            [] => topup.status != "succeeded",
            [entry] => topup.status == "succeeded" && entry.cents == *cents && entry.whole.note == topup.payment,
            _ => false,
        };
        if !fits {
            let status = topup.status;
            found.push(format!(
                "top-up {id} of {cents} is {status}, and booked {} times or otherwise",
                booked.len()
            ));
        }
        let sum_of = |kind: &str| -> i64 {
            let entries = entries.iter().map(|(_, entry)| entry);
            entries
                .filter(|entry| entry.whole.kind == kind)
                .map(|entry| entry.cents)
                .sum()
        };
        let back = sum_of("refund") - sum_of("refund_failed");
        if back != topup.refunded {
            found.push(format!(
                "top-up {id}: {} were paid back, the ledger says {back}",
                topup.refunded
            ));
        }
    }
    found.extend(
        paid.keys()
            .map(|id| format!("entries are about top-up {id}, which does not exist")),
    );
    found
}

/// Entries that take a balance down past a line: from `least` or above to below it.
fn drops<'e, 'r>(entries: &'e [Entry<'r>], least: i64) -> Vec<&'e Entry<'r>> {
    let before = |at: usize| at.checked_sub(1).map_or(0, |at| entries[at].whole.balance_after);
    let falls = |(at, entry): &(usize, &Entry<'_>)| before(*at) >= least && entry.whole.balance_after < least;
    entries
        .iter()
        .enumerate()
        .filter(falls)
        .map(|(_, entry)| entry)
        .collect()
}

/// I13: "min balance >= -X, X = sum over sessions live when balance first <= 0 of max(0, cost - hold); no intent at a seq
/// where balance - open holds < 1 c or < its hold". What was paid back or taken meanwhile comes on top.
///
/// Counted from when nothing was available any more, not from when nothing was left: a call that costs more than its hold
/// takes the rest from what is set aside for others, so that it is known from then on only that no more are sent off.
pub fn the_floor_holds(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let (ledgers, _) = ledgers(facts);
    let bought: HashMap<&str, i64> = all_bought(facts)
        .iter()
        .map(|bought| (bought.id, (bought.cost - bought.hold).max(0)))
        .collect();
    let mut found = Vec::new();
    let costly = facts.sessions.iter().filter(|session| session.price > 0);
    for session in costly.filter(|session| session.intent_seq.is_some() && session.hold < 1) {
        found.push(format!("session {} was dialled with nothing set aside", session.id));
    }
    for ((tenant, env), entries) in &ledgers {
        for entry in entries.iter().filter(|entry| entry.whole.kind == "hold") {
            let Whole {
                balance_after,
                held_after,
                ..
            } = entry.whole;
            if balance_after < held_after {
                found.push(format!(
                    "{tenant} in {env}: hold {} was not covered: {balance_after}, of which {held_after} are held",
                    entry.n
                ));
            }
        }
        let (mut floor, mut lived) = (0, HashSet::new());
        for entry in entries {
            let Whole {
                balance_after,
                held_after,
                ..
            } = entry.whole;
            if balance_after >= held_after {
                (floor, lived) = (0, HashSet::new());
                continue;
            }
            let subject = entry.whole.subject.unwrap_or_default();
            match entry.whole.kind {
                "charge" if lived.insert(subject) => floor -= bought.get(subject).copied().unwrap_or_default(),
                "refund" | "adjustment" if entry.from == "available" => floor -= entry.cents,
                _ => {}
            }
            if *balance_after < floor {
                let n = entry.n;
                found.push(format!(
                    "{tenant} in {env}: entry {n} leaves {balance_after}, the floor is {floor}"
                ));
            }
        }
    }
    found
}

/// I14: "`low_balance` and `depleted` counts = downward crossings recomputed from postings". A warning names the threshold that
/// was in force; one that has changed is known from when it was last named. That something costs more than all there is, which
/// no posting tells, counts once per fall as well.
pub fn warnings_are_told(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let (ledgers, _) = ledgers(facts);
    let told = credits(facts);
    let (mut found, _) = falls(facts);
    for account in &facts.accounts {
        let owner = (account.tenant, account.env);
        let entries = ledgers.get(&owner).map_or(&[][..], Vec::as_slice);
        let events = |kind| told.get(&(owner.0, owner.1, kind)).map_or(&[][..], Vec::as_slice);
        let low = events("credits.low_balance");
        for event in low {
            let named = event.threshold.unwrap_or(i64::MIN);
            if !drops(entries, named).iter().any(|drop| follows(event, drop, entries)) {
                found.push(format!(
                    "credits.low_balance {} of {owner:?}: nothing fell below {named}",
                    event.id
                ));
            }
        }
        let other = low.iter().rposition(|event| event.threshold != account.threshold);
        let since = other.map_or(i64::MIN, |at| low[at].seq);
        let low: Vec<_> = low.iter().copied().filter(|event| event.seq > since).collect();
        let drops = account
            .threshold
            .map_or_else(Vec::new, |threshold| drops(entries, threshold));
        let drops: Vec<_> = drops.into_iter().filter(|drop| drop.whole.seq > since).collect();
        each_drop(owner, "credits.low_balance", &drops, &low, &mut found);
    }
    found
}

/// Told in the transaction of the entry: no other transaction's entry stands between them.
fn follows(event: &Event<'_>, drop: &Entry<'_>, entries: &[Entry<'_>]) -> bool {
    let between = |entry: &Entry<'_>| drop.whole.seq < entry.whole.seq && entry.whole.seq < event.seq;
    drop.whole.seq < event.seq && !entries.iter().any(between)
}

fn each_drop(owner: Owner<'_>, kind: &str, drops: &[&Entry<'_>], events: &[&Event<'_>], found: &mut Vec<String>) {
    if drops.len() != events.len() {
        let (are, must) = (events.len(), drops.len());
        found.push(format!("{are} {kind} of {owner:?}, where {must} must be"));
    }
    for (drop, event) in drops
        .iter()
        .zip(events)
        .filter(|(drop, event)| event.seq <= drop.whole.seq)
    {
        found.push(format!(
            "{kind} {} of {owner:?} is told before entry {}",
            event.id, drop.n
        ));
    }
}

/// The events about credits, by owner and type, in their order.
pub fn credits<'r, 'a>(facts: &'r Facts<'a>) -> HashMap<(&'a str, &'a str, &'a str), Vec<&'r Event<'a>>> {
    let key =
        |event: &Event<'a>| Some((event.tenant, event.env, event.kind)).filter(|_| event.kind.starts_with("credits."));
    let mut told = by(&facts.events, key);
    told.values_mut()
        .for_each(|events| events.sort_by_key(|event| event.seq));
    told
}

/// I2, of credits: each payment that was booked has its `credits.topup_succeeded`.
pub fn credits_are_told(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let (ledgers, _) = ledgers(facts);
    let told = credits(facts);
    let mut found = Vec::new();
    let owners: HashSet<Owner<'_>> = told
        .keys()
        .map(|(tenant, env, _)| (*tenant, *env))
        .chain(ledgers.keys().copied())
        .collect();
    for owner in owners {
        let events = told
            .get(&(owner.0, owner.1, "credits.topup_succeeded"))
            .map_or(&[][..], Vec::as_slice);
        let mut named: Vec<_> = events.iter().map(|event| event.payment.unwrap_or_default()).collect();
        let entries = ledgers.get(&owner).map_or(&[][..], Vec::as_slice).iter();
        let mut booked: Vec<_> = entries
            .filter(|entry| entry.whole.kind == "topup")
            .map(|entry| entry.whole.note.unwrap_or_default())
            .collect();
        named.sort_unstable();
        booked.sort_unstable();
        if named != booked {
            found.push(format!(
                "{owner:?}: the payments {booked:?} are booked, and {named:?} are told"
            ));
        }
    }
    found
}

/// I21: "depletion: no intent of that tenant between depleted and top-up seq".
pub fn nothing_leaves_an_empty_purse(_: &Evidence, facts: &Facts<'_>) -> Vec<String> {
    let (_, spells) = falls(facts);
    let calls = by(&facts.sessions, |session| {
        session.intent_seq.map(|_| (session.tenant, session.env))
    });
    let sends = by(&facts.sends, |send| Some((send.tenant, send.env)));
    let mut found = Vec::new();
    for (owner, spells) in spells {
        let calls = calls.get(&owner).into_iter().flatten();
        let calls = calls.filter_map(|session| Some((session.id, session.intent_seq?)));
        let sends = sends.get(&owner).into_iter().flatten();
        for (id, seq) in calls.chain(sends.map(|send| (send.message, send.seq))) {
            if let Some(spell) = spells.iter().find(|spell| spell.from < seq && seq < spell.until) {
                found.push(format!(
                    "{id} was sent off at {seq}: {owner:?} had nothing left since {}",
                    spell.from
                ));
            }
        }
    }
    found
}
