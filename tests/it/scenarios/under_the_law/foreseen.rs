//! What a preflight says the law will bar is what is skipped: random people, in random places, who have agreed to random things.
use super::{
    attempts, barred, called, consent, contacts, draft, eligibility, fates, mid_morning, person, seller, start,
};
use crate::{
    on_both,
    world::{World, minutes, seconds},
};
use serde_json::{Value, json};

/// By hand with more: `CALLBOARD_TEST_CAMPAIGNS=20`.
fn campaigns() -> u64 {
    let wanted = std::env::var("CALLBOARD_TEST_CAMPAIGNS");
    wanted.map_or(2, |count| count.parse().unwrap())
}
const PEOPLE: u64 = 30;

/// The same numbers each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()].clone()
    }
}

/// To what somebody has agreed; each is enough three times of four.
fn agreed(dice: &mut Dice) -> Value {
    json!({
        "seller": dice.of(&["Acme Ltd.", "ACME LTD.", "acme  ltd.", "Other Inc."]),
        "tier": dice.of(&["express_written", "opt_in_double", "express_written", "express", "existing_contract"]),
        "channels": dice.of(&[json!(["phone"]), json!(["phone", "sms"]), json!(["phone", "sms"]), json!(["sms"])]),
        "covers_automated_voice": dice.below(4) > 0,
        "purposes": dice.of(&[json!(["marketing"]), json!(["marketing", "service"]), json!(["marketing"]), json!(["service"])]),
        "expires_at": dice.of(&[Value::Null, Value::Null, json!("2027-06-01T00:00:00Z"), json!("2027-03-02T12:00:00Z")]),
        "contract_ref": "C-1",
    })
}

on_both! {
    async fn who_is_barred_was_foreseen(world: &mut World) {
        let tenant = seller(world).await;
        mid_morning(world).await;
        let mut dice = Dice(0x1a3_5eed_0001);
        let (mut of_called, mut of_barred) = (0, 0);
        for campaign in 0..campaigns() {
            let mut people = Vec::new();
            for n in 0..PEOPLE {
                let number = format!("+15005{campaign:03}{n:02}1");
                for _ in 0..dice.below(3) {
                    consent(&tenant.api, &number, agreed(&mut dice)).await;
                }
                people.push(person(&number, dice.of(&["FR", "DE", "NL", "PL", "US-NY", "US-GA", "BR"])));
            }
            // Under the rate limit of a key.
            world.advance(seconds(1)).await;
            let path = draft(&tenant, &people, json!({})).await;
            let look = tenant.api.post(&format!("{path}/preflight"), json!({})).await.ok();
            let mut foreseen = Vec::new();
            for contact in contacts(&tenant, &path).await {
                let said = eligibility(&tenant, &path, &contact).await;
                let is_barred = said["law"].as_array().unwrap().iter().any(|asked| asked["verdict"] == "never");
                foreseen.push(if is_barred { barred() } else { called() });
            }
            start(&tenant, &path).await;
            world.advance(minutes(3)).await;
            assert_eq!(fates(&tenant, &path).await, foreseen, "{people:?}");
            let count = |fate: (String, String, i64)| foreseen.iter().filter(|known| **known == fate).count();
            let (called, barred) = (count(called()), count(barred()));
            assert_eq!((&look["eligible"], &look["skips"]["dnc_blocked"]), (&json!(called), &json!(barred)), "{look:#}");
            assert_eq!(attempts(&tenant, &path).await.len(), called);
            (of_called, of_barred) = (of_called + called, of_barred + barred);
        }
        assert!(of_called > 0 && of_barred > 0, "{of_called} and {of_barred}: there was something to foresee");
    }
}
