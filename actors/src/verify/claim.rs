//! A number for live use: who may take it, from whom, and who is told.
//!
//! | It is | A code was said back by | The operator gives it to |
//! |---|---|---|
//! | nobody's | taken | taken |
//! | the same workspace's, by a code | taken anew | taken: it is by the operator's word from now on |
//! | the same workspace's, by the operator's word | no change | taken anew |
//! | another's, by a code | taken; the other is told | taken; the other is told |
//! | another's, by the operator's word | no change | taken; the other is told |
//!
//! A fresh code beats an old one: numbers are given out again, and whoever has the number now answers it, which is all that
//! a code ever proved. Who lost one wrongly proves it again in the same way, for they still answer it. A number that must
//! not move so, for it is reached by several people, or by an exchange that forwards, is claimed by the operator, who has
//! seen a contract; only the operator undoes that.
use entities::{
    Result, boxed,
    connection::Connection,
    ids::TenantId,
    mail, membership,
    number_claim::{self as store, Model, Source},
};
use rules::mail::Mail;
use runtime::ids::Ids;

/// What becomes of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// It stays as it is.
    Unchanged,
    /// The number is the asking workspace's now; and whose it was, if another's.
    Taken { from: Option<TenantId> },
}

/// See the table above. Pure.
pub fn decide(held: Option<&Model>, asked: &Model) -> Claimed {
    match (
        held.map(|held| (held.tenant_id == asked.tenant_id, held.source)),
        asked.source,
    ) {
        (None | Some((true, Source::Code)), Source::Code | Source::Operator) => Claimed::Taken { from: None },
        (Some((true | false, Source::Operator)), Source::Code) => Claimed::Unchanged,
        (Some((true, Source::Operator)), Source::Operator) => Claimed::Taken { from: None },
        (Some((false, Source::Code)), Source::Code)
        | (Some((false, Source::Code | Source::Operator)), Source::Operator) => Claimed::Taken {
            from: held.map(|held| held.tenant_id),
        },
    }
}

/// Claims a number, in the caller's transaction; answers the mails that tell the owners of a workspace that has lost it.
#[boxed]
pub async fn claim(db: &Connection, ids: &Ids, asked: Model) -> Result<(Claimed, Vec<mail::Model>)> {
    let held = store::load(db, &asked.phone_number).await?;
    let claimed = decide(held.as_ref(), &asked);
    let Claimed::Taken { from } = &claimed else {
        return Ok((claimed, Vec::new()));
    };
    let mut mails = Vec::new();
    if let Some(loser) = *from {
        let mail = notice(&asked);
        for recipient in membership::owners(db, loser).await? {
            mails.push(mail.row(ids.next(), loser, recipient, asked.claimed_at));
        }
    }
    if store::put(db, asked).await? {
        Ok((claimed, mails))
    } else {
        Ok((Claimed::Unchanged, Vec::new()))
    }
}

/// Says what happened and what to do, and not who has it now.
fn notice(claim: &Model) -> Mail {
    let number = &claim.phone_number;
    let (why, then) = match claim.source {
        Source::Code => (
            "somebody else can be reached on it, and proved that with a code sent to it",
            "If it is still yours: POST it to /v1/verified_numbers with a live key and confirm the code that comes to it; that\n\
             gives it back to you. If you did not give it away, somebody else could read what comes to it: look into that, and\n\
             ask your operator to claim it for you, which no code undoes.",
        ),
        Source::Operator => (
            "the operator of this installation has given it to another workspace",
            "If that is wrong, ask the operator.",
        ),
    };
    Mail {
        kind: "number.claim_moved",
        subject: format!("{number} is no longer verified for live use"),
        body: format!(
            "Your workspace's number {number} is no longer verified for live use, since {at}: {why}.\n\
             \n\
             It stays among your numbers, and tests with it go on. Live calls and texts are not sent from it and not taken on it.\n\
             \n\
             {then}\n",
            number = number.as_str(),
            at = claim.claimed_at,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::values::Moment;
    use uuid::Uuid;

    fn of(tenant: u128, source: Source) -> Model {
        Model {
            phone_number: "+12025550140".parse().unwrap(),
            tenant_id: TenantId(Uuid::from_u128(tenant)),
            source,
            claimed_at: Moment::from_millis(1_700_000_000_000),
        }
    }

    #[test]
    fn every_holder_and_every_proof() {
        use Source::{Code, Operator};
        let other = Some(TenantId(Uuid::from_u128(2)));
        let taken = |from| Claimed::Taken { from };
        let table = [
            (None, Code, taken(None)),
            (None, Operator, taken(None)),
            (Some((1, Code)), Code, taken(None)),
            (Some((1, Code)), Operator, taken(None)),
            (Some((1, Operator)), Code, Claimed::Unchanged),
            (Some((1, Operator)), Operator, taken(None)),
            (Some((2, Code)), Code, taken(other)),
            (Some((2, Code)), Operator, taken(other)),
            (Some((2, Operator)), Code, Claimed::Unchanged),
            (Some((2, Operator)), Operator, taken(other)),
        ];
        for (held, source, expected) in table {
            let held = held.map(|(tenant, source)| of(tenant, source));
            assert_eq!(decide(held.as_ref(), &of(1, source)), expected, "{held:?} {source:?}");
        }
    }

    #[test]
    fn whoever_lost_it_is_not_told_to_whom() {
        for source in [Source::Code, Source::Operator] {
            let claim = of(1, source);
            let mail = notice(&claim);
            assert!(mail.body.contains("+12025550140") && !mail.body.contains(&claim.tenant_id.to_string()));
            assert!(mail.subject.starts_with("+12025550140"), "{}", mail.subject);
        }
    }
}
