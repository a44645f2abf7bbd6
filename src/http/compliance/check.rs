//! What the law would say, of anybody in any place at any moment. Nothing is stored.
use crate::{
    access,
    http::{
        caller::Caller,
        error::{ApiError, ApiResult},
        extract::Params,
        sms_messages::check_region,
        views::LawCheckView,
    },
    state::State,
};
use actix_web::web::{self, Data};
use actors::compliance::{self, Question};
use chrono::{Datelike, NaiveDate, TimeZone};
use chrono_tz::Tz;
use entities::{
    dnc::DncChannel,
    law::Legal,
    tenant,
    values::{Country, E164, Moment, Place, Text, Zone},
};
use rules::{
    barred::{self, Whom},
    zone,
};

/// GET /v1/compliance/check
pub async fn check(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<LawCheckView>> {
    let question = question(&state, &caller, &mut params).await?;
    params.finish()?;
    let answer = compliance::ask(&state.deps, question).await?;
    let law = compliance::law(&state.deps);
    Ok(web::Json(LawCheckView::of(law, &answer, caller.env())))
}

async fn question(state: &State, caller: &Caller, params: &mut Params) -> ApiResult<Question> {
    let tenant = tenant::load(&state.deps.db.read, caller.tenant_id()).await?;
    let country = tenant.own_country()?;
    let to = params.take("to").map(|to| whom(&to, country)).transpose()?;
    let region: Option<Place> = params.text("region")?;
    if to.is_none() && region.is_none() {
        let why = "give a number, an e-mail address, or a place as `region`";
        return Err(ApiError::validation("to", why));
    }
    check_region(region.as_ref())?;
    let channel = channel(params.text("channel")?, to.as_ref())?;
    let zone: Option<Zone> = params.text("timezone")?;
    let known = zone
        .map(Zone::tz)
        .or_else(|| zone_of(to.as_ref()))
        .or_else(|| main_zone(region.as_ref()));
    let noon_in = known.unwrap_or(tenant.timezone.tz());
    let at = moment(params, noon_in)?.unwrap_or_else(|| state.deps.clock.now());
    Ok(Question {
        owner: caller.owner(),
        at,
        to,
        region,
        zone,
        channel,
        legal: Legal {
            purpose: params.text("purpose")?.unwrap_or_default(),
            audience: params.text("audience")?.unwrap_or_default(),
            vertical: params.text("vertical")?,
            seller: params.text("seller")?,
            subject: params.text("subject")?,
            contract_ref: params.text("contract_ref")?,
        },
        language: params
            .text::<Text<2, 35>>("language")?
            .map_or_else(|| "en".to_owned(), Text::into_string),
        from: number(params, "from", country)?,
        supposed: params.text("consent")?,
        is_cloned_voice: params.flag("cloned_voice")?,
    })
}

fn whom(typed: &str, country: Country) -> ApiResult<Whom> {
    if typed.contains('@') {
        let bad = |_| ApiError::validation("to", "is not an e-mail address; write name@example.com");
        return barred::email(typed).map(Whom::Email).map_err(bad);
    }
    number_of(typed, country)
        .map(Whom::Number)
        .map_err(|why| ApiError::validation("to", why))
}

fn number(params: &mut Params, name: &str, country: Country) -> ApiResult<Option<E164>> {
    let number = params.take(name).map(|typed| number_of(&typed, country)).transpose();
    number.map_err(|why| ApiError::validation(name, why))
}

/// A `+` that was not escaped arrives as a blank.
fn number_of(typed: &str, country: Country) -> Result<E164, String> {
    match typed.strip_prefix(' ') {
        Some(rest) => E164::parse(&format!("+{}", rest.trim()), country),
        None => E164::parse(typed, country),
    }
}

fn channel(asked: Option<DncChannel>, to: Option<&Whom>) -> ApiResult<DncChannel> {
    match (asked, to) {
        (None, Some(Whom::Email(_))) => Ok(DncChannel::Email),
        (None, Some(Whom::Number(_)) | None) => Ok(DncChannel::Phone),
        (Some(DncChannel::Phone | DncChannel::Sms), Some(Whom::Email(_))) => {
            Err(ApiError::validation("channel", "must be `email` for an address"))
        }
        (Some(DncChannel::Email), Some(Whom::Number(_))) => {
            Err(ApiError::validation("channel", "must be `phone` or `sms` for a number"))
        }
        (Some(channel), _) => Ok(channel),
    }
}

fn zone_of(to: Option<&Whom>) -> Option<Tz> {
    match to? {
        Whom::Number(number) => zone::candidates(number).first().copied(),
        Whom::Email(_) => None,
    }
}

/// Where most of a country's people are.
fn main_zone(place: Option<&Place>) -> Option<Tz> {
    let country = place?.country().parse::<Country>().ok()?;
    Some(access::zone_of(country).tz())
}

/// Of which years the rules can be asked.
const YEARS: std::ops::RangeInclusive<i32> = 2000..=2099;

fn in_years(name: &str, year: i32) -> ApiResult<()> {
    match YEARS.contains(&year) {
        true => Ok(()),
        false => Err(ApiError::validation(name, "must lie in the years 2000 to 2099")),
    }
}

/// A time, or a date: noon of that day, where the person is.
fn moment(params: &mut Params, zone: Tz) -> ApiResult<Option<Moment>> {
    let Some(text) = params.take("at") else { return Ok(None) };
    if let Ok(day) = text.parse::<NaiveDate>() {
        in_years("at", day.year())?;
        let noon = day
            .and_hms_opt(12, 0, 0)
            .and_then(|noon| zone.from_local_datetime(&noon).earliest());
        let none = || ApiError::validation("at", "has no noon there: give a time");
        return noon.map(|noon| Some(Moment::from(noon.to_utc()))).ok_or_else(none);
    }
    let why = |_| {
        ApiError::validation(
            "at",
            "must be a date, as 2026-08-11, or a time, as 2026-08-11T12:00:00Z",
        )
    };
    let at = Moment::parse(&text).map_err(why)?;
    in_years("at", at.datetime().year())?;
    Ok(Some(at))
}

/// The day of a date, or of a time by UTC.
pub(super) fn day_of(params: &mut Params, name: &str) -> ApiResult<Option<NaiveDate>> {
    let Some(text) = params.take(name) else { return Ok(None) };
    let day = match text.parse::<NaiveDate>() {
        Ok(day) => day,
        Err(_) => Moment::parse(&text).map(|at| at.datetime().date_naive()).map_err(|_| {
            ApiError::validation(
                name,
                "must be a date, as 2026-08-11, or a time, as 2026-08-11T12:00:00Z",
            )
        })?,
    };
    in_years(name, day.year())?;
    Ok(Some(day))
}
