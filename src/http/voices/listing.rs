//! GET /v1/voices: those that are simply there, then the workspace's clones, as one list.
use super::super::{error::ApiResult, extract::Params, views::List};
use super::{VoiceType, VoiceView, builtin_type};
use crate::{http::caller::Caller, state::State};
use actix_web::web::{self, Data};
use adapters::voice_clone::builtin::{self, Builtin};
use entities::{
    page::{Listed, Page},
    voice::{self as store, Model, Status},
};
use uuid::Uuid;

/// A line of the list.
enum Listable {
    /// With its place among them.
    Builtin(u128, Builtin),
    Clone(Box<Model>),
}

impl Listable {
    /// Those that are simply there come before everything that was ever made.
    fn place(&self) -> Uuid {
        match self {
            Listable::Builtin(place, _) => Uuid::from_u128(*place),
            Listable::Clone(row) => row.id.0,
        }
    }
}

/// GET /v1/voices
pub async fn list(state: Data<State>, caller: Caller, mut params: Params) -> ApiResult<web::Json<List<VoiceView>>> {
    let page = params.page()?;
    let wanted: Option<VoiceType> = params.text("type")?;
    let status: Option<Status> = params.text("status")?;
    params.finish()?;
    let mut rows = there(&state, wanted, status, page);
    let mut more = false;
    if wanted.is_none_or(|wanted| wanted == VoiceType::Cloned) {
        let clones = store::list(&state.deps.db, caller.tenant_id(), status, page).await?;
        more = clones.has_more;
        rows.extend(clones.rows.into_iter().map(Box::new).map(Listable::Clone));
    }
    Ok(web::Json(paged(&state, rows, page, more)))
}

/// The voices that are simply there, as far as this page may hold them.
fn there(state: &State, wanted: Option<VoiceType>, status: Option<Status>, page: Page) -> Vec<Listable> {
    // They were not created at any time.
    let timeless = page.created_after.is_none() && page.created_before.is_none();
    if !timeless || status.is_some_and(|status| status != Status::Ready) {
        return Vec::new();
    }
    let beyond = |place: Uuid| match page.after {
        Some(after) if page.newest_first => place < after,
        Some(after) => place > after,
        None => true,
    };
    builtin::all(state.deps.studio.voice.name(), &state.deps.providers)
        .into_iter()
        .zip(1..)
        .map(|(voice, place)| Listable::Builtin(place, voice))
        .filter(|line| beyond(line.place()))
        .filter(|line| match line {
            Listable::Builtin(_, voice) => wanted.is_none_or(|wanted| wanted == builtin_type(voice)),
            Listable::Clone(_) => true,
        })
        .collect()
}

fn paged(state: &State, mut rows: Vec<Listable>, page: Page, more: bool) -> List<VoiceView> {
    rows.sort_by_key(Listable::place);
    if page.newest_first {
        rows.reverse();
    }
    let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let has_more = more || rows.len() > limit;
    rows.truncate(limit);
    List::of(Listed { rows, has_more }, Listable::place, |line| match line {
        Listable::Builtin(_, voice) => voice.into(),
        Listable::Clone(row) => VoiceView::of(state, *row),
    })
}
