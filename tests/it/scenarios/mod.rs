//! The flows of the specification, each as its users see it.
mod a_call_ends;
mod a_campaign_runs;
mod an_endpoint_is_suspended;
mod an_event_is_delivered;
mod calls_by_the_api;
mod campaign_by_hand;
mod credits;
mod faults;
mod mended;
mod messages;
mod numbers;
mod races;
mod the_call;
mod the_law;
mod topups;
mod voices;
mod webhooks_in_detail;
