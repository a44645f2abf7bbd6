//! E-mails to owners about what their calls do to those who are called, and to the numbers that they show.
use crate::mail::Mail;
use entities::{
    abandonment::{Abandonment, AbandonmentLimit},
    caller_rest::CallerRestCause,
    ids::CampaignId,
    number_hour::Counts,
    values::{E164, Moment},
};

/// A campaign is held for what it has abandoned.
pub fn braked(id: CampaignId, name: &str, so_far: Abandonment, limits: &[AbandonmentLimit]) -> Mail {
    let is_reached = |limit: &&AbandonmentLimit| so_far.is_braked(limit);
    let reached: Vec<String> = limits
        .iter()
        .filter(is_reached)
        .map(|limit| line(so_far, limit))
        .collect();
    let body = format!(
        "Callboard has stopped dialling for a campaign of your workspace: too many of its calls were answered by a person and\n\
         abandoned, which is near what the law allows.\n\
         \n\
         Campaign   {name}\n\
         Id         {id}\n\
         {reached}\n\
         \n\
         A call is abandoned when a person answers and hears nothing of the agent's within two seconds after the greeting, when the\n\
         agent's model or voice fails before its first word, and when a person is taken for a machine and hung up on. Each such call\n\
         says why: GET /v1/sessions/{{id}}, `abandoned`.\n\
         \n\
         Calls that are under way go on. Dialling goes on by itself when the rate is below the brake again: old calls leave the count.\n\
         Find out why before that: a slow model or voice, too many calls at once, or the detection of answering machines.\n",
        reached = reached.join("\n"),
    );
    Mail {
        kind: "campaign.held_for_abandonment",
        subject: format!("Campaign held for abandoned calls: {}", short(name)),
        body,
    }
}

fn line(so_far: Abandonment, limit: &AbandonmentLimit) -> String {
    let (answers, span) = match limit.hours {
        ..=24 => (so_far.day, "24 hours"),
        _ => (so_far.month, "30 days"),
    };
    format!(
        "Abandoned  {abandoned} of {live} answered calls in {span}; the brake is at {brake}, the limit at {most}",
        abandoned = answers.abandoned,
        live = answers.live,
        brake = percent(limit.brake_permille),
        most = percent(limit.limit_permille),
    )
}

/// Of thousandths: `0.5 %`.
fn percent(permille: u32) -> String {
    match permille % 10 {
        0 => format!("{} %", permille / 10),
        rest => format!("{}.{rest} %", permille / 10),
    }
}

/// A number is shown no more for a while.
pub fn caller_rests(number: &E164, cause: CallerRestCause, counts: Counts, until: Moment) -> Mail {
    let Counts {
        dialed,
        answered,
        blocked,
    } = counts;
    let (why, then) = match cause {
        CallerRestCause::Blocked => (
            "networks block calls that show it",
            "Register it and your company with the analytics of the carriers (in the United States: freecallerregistry.com), ask your\n\
             carrier how it signs your calls, and call fewer people who do not expect it.",
        ),
        CallerRestCause::Unanswered => (
            "hardly anybody picks up any more when it is shown",
            "Such a number is often marked as spam on the phones of those who are called. Look it up, and call fewer people who do not\n\
             expect it.",
        ),
    };
    Mail {
        kind: "number.rests",
        subject: format!("{number} rests for a day"),
        body: format!(
            "Your workspace's number {number} rests until {until}: {why}.\n\
             \n\
             Calls that showed it in the last 24 hours: {dialed}; picked up: {answered}; blocked: {blocked}.\n\
             \n\
             Campaigns with more numbers do not show it until then. Where it is the only one, it is shown all the same.\n\
             \n\
             {then}\n",
            number = number.as_str(),
        ),
    }
}

/// A subject line has no room for a long name.
fn short(name: &str) -> String {
    name.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::abandonment::Answers;
    use uuid::Uuid;

    #[test]
    fn owners_are_told_what_has_held_their_campaign() {
        let us = AbandonmentLimit {
            limit_permille: 30,
            brake_permille: 20,
            hours: 720,
        };
        let uk = AbandonmentLimit {
            brake_permille: 5,
            hours: 24,
            ..us
        };
        let so_far = Abandonment {
            day: Answers {
                live: 1_000,
                abandoned: 3,
            },
            month: Answers {
                live: 1_000,
                abandoned: 25,
            },
        };
        let mail = braked(CampaignId(Uuid::from_u128(7)), "Spring", so_far, &[us, uk]);
        assert!(mail.subject.ends_with("Spring"));
        let told = "25 of 1000 answered calls in 30 days; the brake is at 2 %, the limit at 3 %";
        assert!(mail.body.contains(told), "{}", mail.body);
        assert!(
            !mail.body.contains("24 hours"),
            "that brake was not reached: {}",
            mail.body
        );
        let mail = braked(
            CampaignId(Uuid::from_u128(7)),
            "Spring",
            so_far,
            &[AbandonmentLimit {
                brake_permille: 3,
                ..uk
            }],
        );
        assert!(
            mail.body
                .contains("3 of 1000 answered calls in 24 hours; the brake is at 0.3 %"),
            "{}",
            mail.body
        );
    }
}
