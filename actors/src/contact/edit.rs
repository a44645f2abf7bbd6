//! Changing one contact by hand: its settings, its removal, one attempt more. Each looks and writes in one transaction.
use super::intake::{Given, Place, Reading};
use crate::{
    deps::Deps,
    facts,
    legal::{self, Asked},
    people::{People, people},
    registers::asking::Unanswered,
    shell::Stored,
};
use entities::{
    Error, Result, boxed,
    campaign::{self, Channel, Model as CampaignRow, Status as CampaignStatus},
    connection::{Connection, Transaction},
    contact::{self as store, Model as Contact, Status, UNCALLABLE, WaitReason},
    dispatch_block::{self, Reason},
    email_message,
    ids::{CampaignId, ContactId, TenantScoped},
    message, session, sms_message, tenant,
    values::{Country, Moment, Text},
};
use rules::{
    campaign::machine::Campaign,
    commit::Commit,
    contact::machine::{self, Command},
    eligibility::{self, ContactRecord, RING_MS, Rule, Terms, Verdict},
    hours::{self, CallingHours, Rules},
    law::{Judged, LegalTerms},
};
use uuid::Uuid;

/// A contact and the campaign that it must be in.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub contact: TenantScoped<ContactId>,
    pub campaign: CampaignId,
}

impl Target {
    fn campaign(self) -> TenantScoped<CampaignId> {
        TenantScoped::new(self.contact.tenant_id, self.contact.env, self.campaign)
    }

    #[boxed]
    pub async fn load(self, db: &Connection) -> Result<Contact> {
        campaign::load(db, self.campaign()).await?;
        let contact = store::load(db, self.contact).await?;
        if contact.campaign_id == self.campaign {
            Ok(contact)
        } else {
            Err(Error::NotFound("contact"))
        }
    }
}

/// The contact as it was handed in: what a merge patch is applied to.
pub fn given(contact: &Contact) -> serde_json::Value {
    serde_json::json!({
        "phone_number": contact.number(),
        "external_id": contact.external_id,
        "email": contact.email,
        "first_name": contact.first_name,
        "last_name": contact.last_name,
        "timezone": contact.timezone,
        "region": contact.region,
        "consent_id": contact.consent_id,
        "variables": contact.variables,
        "priority": contact.priority,
        "not_before": contact.not_before,
    })
}

/// Other settings for a contact that waits to be called.
#[boxed]
pub async fn change(deps: &Deps, target: Target, given: Given, country: Country) -> Result<Contact> {
    let job_deps = deps.clone();
    deps.writer
        .run(target.contact.tenant_id, move |db| {
            let (deps, given) = (job_deps.clone(), given.clone());
            Box::pin(async move {
                let before = target.load(db).await?;
                if !matches!(before.status, Status::Pending | Status::Waiting) {
                    return Err(refused(
                        &before,
                        "be changed",
                        "only contacts that wait to be called can be",
                    ));
                }
                let campaign = campaign::load(db, target.campaign()).await?;
                let reading = Reading::of(&campaign.plan, country)?;
                let after = changed(&deps, before.clone(), given, &reading)?;
                check_unique(db, &before, &after).await?;
                let mut commit = Commit::default();
                commit.changes.contacts.push(after.clone());
                // No dial that is in preparation may still use the former number.
                touch(&mut commit, campaign)?;
                Ok((after, commit))
            })
        })
        .await
}

fn changed(deps: &Deps, before: Contact, given: Given, reading: &Reading) -> Result<Contact> {
    let text = |text: Option<String>| text.filter(|text| !text.is_empty());
    let refused = |field: &str, why: String| match field {
        "email" | "region" => Error::invalid(field, why),
        _ => Error::invalid("phone_number", why),
    };
    let place =
        Place::of(deps, before.channel, &given, reading.country).map_err(|(field, why)| refused(&field, why))?;
    let now = deps.clock.now();
    // What waits for a retry, or for a cap, goes on waiting for it.
    let (next_attempt_at, wait_reason) = match before.wait_reason {
        Some(WaitReason::Retry | WaitReason::Cap) => (before.next_attempt_at, before.wait_reason),
        Some(WaitReason::NotBefore) | None => {
            let waits = given.not_before.filter(|at| *at > now);
            (waits, waits.map(|_| WaitReason::NotBefore))
        }
    };
    let after = Contact {
        external_id: given.external_id.map(Text::into_string),
        address: place.address,
        phone_number: place.phone_number,
        zone: place.zone,
        email: text(given.email.map(Text::into_string)),
        first_name: text(given.first_name.map(Text::into_string)),
        last_name: text(given.last_name.map(Text::into_string)),
        timezone: given.timezone,
        region: given.region,
        consent_id: given.consent_id,
        variables: given.variables,
        priority: given.priority.get(),
        not_before: given.not_before,
        next_attempt_at,
        wait_reason,
        version: before.version + 1,
        ..before
    };
    match reading.needs.iter().find(|name| after.value_of(name).is_none()) {
        Some(name) => Err(Error::invalid(
            "variables",
            format!("the campaign's template needs {{{{{name}}}}}: the contact would have none"),
        )),
        None => Ok(after),
    }
}

async fn check_unique(db: &Transaction, before: &Contact, after: &Contact) -> Result<()> {
    if after.address != before.address {
        let field = match before.channel {
            Channel::Phone | Channel::Sms => "phone_number",
            Channel::Email => "email",
        };
        if before.last_row_id.is_some() {
            return Err(Error::invalid(field, "is fixed once the contact has been called"));
        }
        if store::at_address(db, before.campaign_id, &after.address)
            .await?
            .is_some()
        {
            return Err(Error::AlreadyExists { field });
        }
    }
    if let Some(external_id) = &after.external_id {
        let same = store::with_external_ids(db, before.campaign_id, std::slice::from_ref(external_id)).await?;
        if same.iter().any(|other| other.id != before.id) {
            return Err(Error::AlreadyExists { field: "external_id" });
        }
    }
    Ok(())
}

/// Removes a contact that was never called. Of one that was called, or told as skipped, who it was is erased: its campaign goes on
/// to count it.
#[boxed]
pub async fn remove(deps: &Deps, target: Target) -> Result<()> {
    let clock = deps.clock.clone();
    deps.writer
        .run(target.contact.tenant_id, move |db| {
            let clock = clock.clone();
            Box::pin(async move {
                let contact = target.load(db).await?;
                let row = campaign::load(db, target.campaign()).await?;
                let mut commit = Commit::default();
                let was_called = contact.last_row_id.is_some();
                if contact.status == Status::Pending && !was_called && row.status != CampaignStatus::Completed {
                    store::remove(db, contact.id).await?;
                    let tally = commit.changes.tally(target.campaign());
                    tally.total -= 1;
                    *facts::count_of(tally, contact.status) -= 1;
                } else {
                    let (after, events) =
                        machine::transition(contact.clone(), Command::Erase, &row.plan.retry, clock.now())?;
                    if after == contact {
                        return Ok(((), commit));
                    }
                    facts::contact_moved(&mut commit, &contact, after, &events);
                }
                // No dial that is in preparation may bring it back.
                touch(&mut commit, row)?;
                Ok(((), commit))
            })
        })
        .await
}

/// The campaign's version grows: a dispatcher that has read its contacts before reads them again.
fn touch(commit: &mut Commit, row: CampaignRow) -> Result<()> {
    Campaign::from_row(row)?.save(commit);
    Ok(())
}

/// One attempt more for a contact that has come to its end, not sooner than its campaign's gap allows.
#[boxed]
pub async fn retry(deps: &Deps, target: Target) -> Result<Contact> {
    let clock = deps.clock.clone();
    deps.writer
        .run(target.contact.tenant_id, move |db| {
            let clock = clock.clone();
            Box::pin(async move {
                let contact = target.load(db).await?;
                let row = campaign::load(db, target.campaign()).await?;
                let state = match (row.status, row.cancel_requested_at) {
                    (CampaignStatus::Completed, _) => Some("completed"),
                    (_, Some(_)) => Some("closing"),
                    (CampaignStatus::Draft | CampaignStatus::Running | CampaignStatus::Paused, None) => None,
                };
                if let Some(state) = state {
                    return Err(Error::InvalidState {
                        kind: "campaign",
                        state,
                        command: "call anybody again",
                        hint: "create a new campaign",
                    });
                }
                let now = clock.now();
                let not_before = gap_ends(db, &contact, &row).await?.map_or(now, |at| at.max(now));
                let command = Command::Retry { not_before };
                let (after, events) = machine::transition(contact.clone(), command, &row.plan.retry, now)?;
                let mut commit = Commit::default();
                facts::contact_moved(&mut commit, &contact, after.clone(), &events);
                Ok((after, commit))
            })
        })
        .await
}

/// When the gap after its last call is over.
async fn gap_ends(db: &Transaction, contact: &Contact, row: &CampaignRow) -> Result<Option<Moment>> {
    let Some(last) = contact.last_row_id.map(Uuid::from) else {
        return Ok(None);
    };
    let (tenant, env) = (contact.tenant_id, contact.env);
    let ended_at = match contact.channel {
        Channel::Phone => match session::load(db, TenantScoped::new(tenant, env, last.into())).await {
            Ok(last) => last.ended_at,
            // It is so old that it was removed.
            Err(Error::NotFound(_)) => None,
            Err(error) => return Err(error),
        },
        Channel::Sms => {
            message::ended_at::<sms_message::Entity>(db, TenantScoped::new(tenant, env, last.into())).await?
        }
        Channel::Email => {
            message::ended_at::<email_message::Entity>(db, TenantScoped::new(tenant, env, last.into())).await?
        }
    };
    let gap = i64::from(row.plan.retry.min_gap_minutes.get()) * 60;
    Ok(ended_at.map(|ended_at| ended_at.plus_seconds(gap)))
}

/// What the rules say of one contact, each for itself.
pub struct Eligibility {
    pub contact: Contact,
    pub campaign: CampaignRow,
    pub rules: Vec<(Rule, Verdict)>,
    /// What each rule of the law says, and whether it binds.
    pub law: Option<(LegalTerms, Judged)>,
    /// The zones that count.
    pub zones: Vec<chrono_tz::Tz>,
    /// When the contact's hours are open next; `None`: not within a year.
    pub next_opening: Option<Moment>,
}

#[boxed]
pub async fn eligibility(deps: &Deps, target: Target) -> Result<Eligibility> {
    let (db, now) = (&deps.db.read, deps.clock.now());
    let contact = target.load(db).await?;
    let campaign = campaign::load(db, target.campaign()).await?;
    let tenant = tenant::load(db, contact.tenant_id).await?;
    let blocks = dispatch_block::of(db, contact.tenant_id).await?;
    let since = |reason| {
        let found = blocks
            .iter()
            .find(|block| block.env == contact.env && block.reason == reason);
        found.map(|block| block.since)
    };
    let at = contact.reachable_at();
    let owner = (contact.tenant_id, contact.env);
    let whose = People {
        owner,
        channel: contact.channel,
        itself: None,
    };
    let mut people = people(deps, &deps.db.read, whose, at.iter().cloned().collect(), now).await?;
    let legal = legal::of_campaign(deps, db, &campaign).await?;
    let behind_ms = deps.clock.times().behind_ms();
    let mut judged = None;
    let mut record = ContactRecord::default();
    if let Some(at) = at {
        let asked = Asked::of(&contact, at.clone());
        let only = (std::slice::from_ref(&asked), Unanswered::Leave);
        legal::learn(deps, owner, &legal, only, (&mut people, now)).await?;
        record = people.remove(&at).unwrap_or_default();
        let verdict = legal.judged(asked.whom(), &record, None, (now, behind_ms));
        record.judgement = legal.is_enforced.then(|| legal.by_both_clocks(&verdict, behind_ms));
        judged = Some(verdict);
    }
    record.not_before = contact.next_attempt_at.max(contact.not_before);
    let rules = Rules::new(&campaign.plan.schedule, contact.env, tenant.timezone).under(legal::hours(&legal));
    let group = hours::regrouped(&legal.law, &contact).unwrap_or_else(|| contact.zone.clone());
    let calling_hours = rules.of(&group);
    let terms = Terms {
        caps: &campaign.plan.caps,
        ends_at: rules.ends_at,
        ring_ms: RING_MS,
        suspended_since: since(Reason::Suspension),
        credits_gone: since(Reason::Credits).is_some(),
        behind_ms,
    };
    let verdicts = Rule::ALL.map(|rule| (rule, eligibility::ask(rule, &record, &calling_hours, &terms, now)));
    Ok(Eligibility {
        next_opening: match &calling_hours {
            CallingHours::Hours(hours) => hours.next_opening(now, RING_MS),
            CallingHours::Uncallable => None,
        },
        zones: if contact.zone == UNCALLABLE {
            Vec::new()
        } else {
            rules.zones(&group).unwrap_or_default()
        },
        rules: verdicts.to_vec(),
        law: judged.map(|judged| (legal, judged)),
        contact,
        campaign,
    })
}

fn refused(contact: &Contact, command: &'static str, hint: &'static str) -> Error {
    Error::InvalidState {
        kind: "contact",
        state: machine::state_of(contact.status),
        command,
        hint,
    }
}
