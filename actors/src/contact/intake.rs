//! Taking contacts in: from the API or from a file, read, merged, grouped by their hours, and stored.
//!
//! One number, or one e-mail address, is in a campaign once, however it was typed: duplicates are merged and counted.
use crate::deps::Deps;
use entities::{
    Error, Result, boxed,
    campaign::{self, Channel, Plan},
    connection::Transaction,
    contact::{self as store, Model, Status, UNCALLABLE, WaitReason},
    error::sentence,
    ids::{CampaignId, ConsentId, ContactId, TenantScoped},
    values::{Bounded, Country, E164, Moment, Place as Region, Text, Variables, Zone},
};
use rules::{
    campaign::message_template::MessageTemplate,
    commit::Commit,
    hours,
    law::{Law, places},
    shape,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// One person to call, or to write to.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Given {
    /// However it is typed; without `+` it is read in the workspace's country. What is not a number will be skipped as `invalid`.
    /// Required, except in a campaign of the channel `email`.
    #[serde(default)]
    pub phone_number: Option<Text<1, 40>>,
    /// Your own id for the person; unique in a campaign.
    #[serde(default)]
    pub external_id: Option<Text<1, 200>>,
    /// Required in a campaign of the channel `email`, and unique there.
    #[serde(default)]
    pub email: Option<Text<0, 254>>,
    #[serde(default)]
    pub first_name: Option<Text<0, 200>>,
    #[serde(default)]
    pub last_name: Option<Text<0, 200>>,
    /// Where the person is, if you know better than the number's prefix.
    #[serde(default)]
    pub timezone: Option<Zone>,
    /// In which country, or part of one, the person is, such as `US-FL`: its laws hold beside those of the number's place. In the
    /// sandbox it alone decides.
    #[serde(default)]
    pub region: Option<Region>,
    /// The consent that the call or message rests on; null: the strongest that covers it.
    #[serde(default)]
    pub consent_id: Option<ConsentId>,
    #[serde(default, deserialize_with = "Variables::limited")]
    pub variables: Variables,
    /// Higher ones are called first.
    #[serde(default = "zero")]
    pub priority: Bounded<-1000, 1000>,
    /// Not called before this.
    #[serde(default)]
    pub not_before: Option<Moment>,
}
fn zero() -> Bounded<-1000, 1000> {
    Bounded::new(0).unwrap_or_else(|_| unreachable!("a constant"))
}

/// An entry that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rejected {
    /// The position in the request, from 0.
    pub index: usize,
    pub code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    pub message: String,
}

/// Contacts as they were handed in, read, merged and ready to be stored.
pub struct Sorted {
    pub rows: Vec<Model>,
    pub duplicates: u64,
    pub rejected: Vec<Rejected>,
    /// Where in the request each row came from.
    pub positions: HashMap<ContactId, usize>,
}

/// How a campaign's contacts are read.
#[derive(Clone)]
pub struct Reading {
    pub channel: Channel,
    pub country: Country,
    /// The variables that its template needs.
    pub needs: Vec<String>,
}

impl Reading {
    pub fn of(plan: &Plan, country: Country) -> Result<Self> {
        // A draft may still lack its template; its start looks at every contact.
        let template = match plan.template {
            Some(_) => MessageTemplate::read(plan)?,
            None => None,
        };
        Ok(Reading {
            channel: plan.channel,
            country,
            needs: template.map(|template| template.needs(plan)).unwrap_or_default(),
        })
    }
}

/// Reads entries; those that cannot be read are refused, each with its reason.
pub fn sort(deps: &Deps, key: TenantScoped<CampaignId>, reading: &Reading, given: Vec<serde_json::Value>) -> Sorted {
    let mut sorted = Sorted {
        rows: Vec::new(),
        duplicates: 0,
        rejected: Vec::new(),
        positions: HashMap::new(),
    };
    let mut by_number: HashMap<String, usize> = HashMap::new();
    let mut by_external_id: HashMap<String, usize> = HashMap::new();
    for (index, value) in given.into_iter().enumerate() {
        let read = shape::parse_value::<Given>(value).map_err(|wrong| (wrong.param, wrong.message));
        let row = match read.and_then(|given| row(deps, key, reading, given)) {
            Ok(row) => row,
            Err((param, message)) => {
                sorted.rejected.push(Rejected {
                    index,
                    code: "validation_failed",
                    message: sentence(&param, &message),
                    param: Some(param).filter(|param| !param.is_empty()),
                });
                continue;
            }
        };
        let same_number = by_number.get(&row.address).copied();
        if let Some(external_id) = &row.external_id {
            if by_external_id
                .get(external_id)
                .is_some_and(|at| Some(*at) != same_number)
            {
                sorted
                    .rejected
                    .push(taken(index, "this external_id was given before, with another number"));
                continue;
            }
            let at = same_number.unwrap_or(sorted.rows.len());
            // A duplicate brings its id along only where the first one has none.
            if same_number.is_none_or(|at| sorted.rows[at].external_id.is_none()) {
                by_external_id.insert(external_id.clone(), at);
            }
        }
        if let Some(at) = same_number {
            merge(&deps.law, &mut sorted.rows[at], row);
            sorted.duplicates += 1;
            continue;
        }
        by_number.insert(row.address.clone(), sorted.rows.len());
        sorted.positions.insert(row.id, index);
        sorted.rows.push(row);
    }
    sorted
}

fn taken(index: usize, message: &str) -> Rejected {
    Rejected {
        index,
        code: "already_exists",
        param: Some("external_id".into()),
        message: message.into(),
    }
}

/// The field that is wrong, and why.
type Wrong = (String, String);

fn row(deps: &Deps, key: TenantScoped<CampaignId>, reading: &Reading, given: Given) -> Result<Model, Wrong> {
    let place = Place::of(deps, reading.channel, &given, reading.country)?;
    let text = |text: Option<String>| text.filter(|text| !text.is_empty());
    let now = deps.clock.now();
    let not_before = given.not_before.filter(|at| *at > now);
    let row = Model {
        id: deps.ids.next(),
        tenant_id: key.tenant_id,
        env: key.env,
        campaign_id: key.id,
        external_id: given.external_id.map(Text::into_string),
        channel: reading.channel,
        address: place.address,
        phone_number: place.phone_number,
        email: text(given.email.map(Text::into_string)),
        first_name: text(given.first_name.map(Text::into_string)),
        last_name: text(given.last_name.map(Text::into_string)),
        variables: given.variables,
        timezone: given.timezone,
        region: given.region,
        consent_id: given.consent_id,
        zone: place.zone,
        not_before: given.not_before,
        priority: given.priority.get(),
        status: Status::Pending,
        wait_reason: not_before.map(|_| WaitReason::NotBefore),
        attempts: 0,
        attempt_limit: None,
        last_row_id: None,
        next_attempt_at: not_before,
        skip_reason: None,
        skip_rule: None,
        disposition_code: None,
        version: 1,
        created_at: now,
    };
    match reading.needs.iter().find(|name| row.value_of(name).is_none()) {
        Some(name) => Err((
            format!("variables.{name}"),
            format!("the campaign's template needs {{{{{name}}}}}, and the contact has none"),
        )),
        None => Ok(row),
    }
}

/// Where somebody is reached, and the group whose hours they keep.
pub struct Place {
    pub address: String,
    pub phone_number: String,
    pub zone: String,
}

impl Place {
    /// What cannot be reached is kept as it was typed, and skipped with a reason when its turn comes.
    pub fn of(deps: &Deps, channel: Channel, given: &Given, country: Country) -> Result<Self, Wrong> {
        let region = given.region.as_ref();
        places::check(region).map_err(|why| ("region".to_owned(), why.to_owned()))?;
        let typed = given.phone_number.as_ref();
        let number = typed.map(|typed| number(deps, typed.to_string(), country));
        let group = |callable: Option<&E164>| hours::group(&deps.law, callable, given.timezone, region);
        match (channel, number) {
            (Channel::Phone | Channel::Sms, Some((phone_number, callable))) => Ok(Place {
                address: phone_number.clone(),
                phone_number,
                zone: callable.map_or_else(|| UNCALLABLE.to_owned(), |callable| group(Some(&callable))),
            }),
            (Channel::Phone | Channel::Sms, None) => Err(("phone_number".into(), "is required".into())),
            (Channel::Email, number) => {
                let typed = given.email.as_deref().map(str::trim).unwrap_or_default();
                if typed.is_empty() {
                    return Err(("email".into(), "is required".into()));
                }
                // A number that cannot be called tells no zone, and keeps nobody from being written to.
                let (phone_number, callable) = number.unwrap_or_default();
                let (address, zone) = match rules::barred::email(typed) {
                    Ok(address) => (address, group(callable.as_ref())),
                    Err(_) => (typed.to_owned(), UNCALLABLE.to_owned()),
                };
                Ok(Place {
                    address,
                    phone_number,
                    zone,
                })
            }
        }
    }
}

/// A number as it is stored, and as it can be called. What cannot be called is kept as it was typed, and skipped with a reason when its
/// turn comes.
fn number(deps: &Deps, typed: String, country: Country) -> (String, Option<E164>) {
    match E164::parse(&typed, country) {
        Ok(number) => {
            let costly = number.costly_kind().is_some() && !deps.limits.allow_costly_numbers;
            (number.as_str().to_owned(), (!costly).then_some(number))
        }
        Err(_) => (typed, None),
    }
}

/// The first one stays; what it lacks comes from the second.
fn merge(law: &Law, first: &mut Model, second: Model) {
    first.external_id = first.external_id.take().or(second.external_id);
    first.email = first.email.take().or(second.email);
    first.first_name = first.first_name.take().or(second.first_name);
    first.last_name = first.last_name.take().or(second.last_name);
    first.consent_id = first.consent_id.or(second.consent_id);
    if first.region.is_none() && second.region.is_some() {
        // The laws and the clocks of that place count, too, and its group says so.
        first.region = second.region;
        if first.zone != UNCALLABLE {
            first.zone = hours::group(law, first.e164().as_ref(), first.timezone, first.region.as_ref());
        }
    }
    for (name, value) in second.variables.0 {
        if first.variables.0.len() < Variables::MAX {
            first.variables.0.entry(name).or_insert(value);
        }
    }
}

/// What became of the entries that were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Added {
    pub accepted: u64,
    /// Numbers that the campaign holds already, or that were given twice: merged.
    pub duplicates: u64,
    pub rejected: Vec<Rejected>,
}

/// Inside a transaction: what is new is added, and counted.
#[boxed]
pub async fn insert(db: &Transaction, key: TenantScoped<CampaignId>, sorted: &Sorted) -> Result<(Added, Commit)> {
    let row = campaign::load(db, key).await?;
    let closed = match (row.status, row.cancel_requested_at) {
        (campaign::Status::Completed, _) => Some("completed"),
        (_, Some(_)) => Some("closing"),
        (_, None) => None,
    };
    if let Some(state) = closed {
        return Err(Error::InvalidState {
            kind: "campaign",
            state,
            command: "take contacts",
            hint: "create a new campaign",
        });
    }
    // They were read before this transaction.
    if sorted.rows.iter().any(|new| new.channel != row.plan.channel) {
        return Err(Error::InvalidState {
            kind: "campaign",
            state: "draft",
            command: "take contacts",
            hint: "the campaign's channel was changed at the same moment: send the contacts again",
        });
    }
    let external_ids: Vec<_> = sorted.rows.iter().filter_map(|row| row.external_id.clone()).collect();
    let known = store::with_external_ids(db, key.id, &external_ids).await?;
    let known: HashMap<_, _> = known.into_iter().map(|row| (row.external_id, row.address)).collect();
    let is_taken = |row: &Model| {
        row.external_id.is_some()
            && known
                .get(&row.external_id)
                .is_some_and(|address| *address != row.address)
    };
    let (taken_ones, free): (Vec<_>, Vec<_>) = sorted.rows.iter().cloned().partition(is_taken);
    let accepted = store::add(db, &free).await?;
    let mut commit = Commit::default();
    let tally = commit.changes.tally(key);
    tally.total += i64::try_from(accepted).unwrap_or(i64::MAX);
    tally.pending += i64::try_from(accepted).unwrap_or(i64::MAX);
    let mut added = Added {
        accepted,
        duplicates: sorted.duplicates + free.len() as u64 - accepted,
        rejected: sorted.rejected.clone(),
    };
    for row in taken_ones {
        let index = sorted.positions.get(&row.id).copied().unwrap_or(0);
        added
            .rejected
            .push(taken(index, "this external_id is in the campaign with another number"));
    }
    added.rejected.sort_by_key(|rejected| rejected.index);
    Ok((added, commit))
}
