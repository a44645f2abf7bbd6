//! The rules of the law pack, to be read.
use super::check::day_of;
use crate::{
    http::{
        caller::Caller,
        error::ApiResult,
        extract::Params,
        views::{LawRuleView, List},
    },
    state::State,
};
use actix_web::web::{self, Data};
use actors::compliance;
use chrono::NaiveDate;
use entities::{
    dnc::DncChannel,
    law::{Audience, Purpose},
    values::Place,
};
use rules::law::{Law, LawRule};

/// What the rules are narrowed to.
#[derive(Default)]
struct Filter {
    place: Option<Place>,
    purpose: Option<Purpose>,
    audience: Option<Audience>,
    channel: Option<DncChannel>,
    on: Option<NaiveDate>,
}

/// GET /v1/compliance/rules: all that are left, in one list.
pub async fn list(state: Data<State>, _: Caller, mut params: Params) -> ApiResult<web::Json<List<LawRuleView>>> {
    let filter = Filter {
        place: params.text("place")?,
        purpose: params.text("purpose")?,
        audience: params.text("audience")?,
        channel: params.text("channel")?,
        on: day_of(&mut params, "at")?,
    };
    params.finish()?;
    let law = compliance::law(&state.deps);
    let rules = law.pack.rules.iter().filter(|rule| filter.lets(rule, law));
    Ok(web::Json(List::whole(rules.map(LawRuleView::from).collect())))
}

impl Filter {
    fn lets(&self, rule: &LawRule, law: &Law) -> bool {
        self.place
            .as_ref()
            .is_none_or(|place| compliance::holds_in(law, rule, place))
            && self.purpose.is_none_or(|purpose| rule.purposes.contains(&purpose))
            && self.channel.is_none_or(|channel| rule.channels.contains(&channel))
            && self
                .audience
                .is_none_or(|audience| rule.audiences.is_empty() || rule.audiences.contains(&audience))
            && self.on.is_none_or(|day| {
                rule.from.is_none_or(|from| from <= day) && rule.until.is_none_or(|until| day < until)
            })
    }
}
