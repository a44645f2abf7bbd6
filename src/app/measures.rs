//! What is measured, by name: kind, unit and one line of help for each. `docs/internals/operations.md` says more, and has the same names
//! (`tests/it/architecture.rs`).
use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;
use std::sync::OnceLock;

/// One recorder for the process; tests build several apps.
pub(super) fn recorder() -> PrometheusHandle {
    static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
    HANDLE
        .get_or_init(|| {
            let recorder = PrometheusBuilder::new().build_recorder();
            let handle = recorder.handle();
            // Fails if somebody else has installed one: then theirs gets our numbers.
            let _ = metrics::set_global_recorder(recorder);
            Collector::default().describe();
            describe();
            handle
        })
        .clone()
}

/// Asked by each look at the metrics.
pub fn measure_process(database: &'static str) {
    Collector::default().collect();
    metrics::gauge!("callboard_build_info", "version" => env!("CARGO_PKG_VERSION"), "database" => database).set(1.0);
}

macro_rules! measures {
    ($($kind:ident $name:literal $unit:ident $help:literal;)*) => {
        fn describe() {
            $(measures!(@ $kind $name $unit $help);)*
        }
    };
    (@ counter $name:literal $unit:ident $help:literal) => { describe_counter!($name, Unit::$unit, $help) };
    (@ gauge $name:literal $unit:ident $help:literal) => { describe_gauge!($name, Unit::$unit, $help) };
    (@ summary $name:literal $unit:ident $help:literal) => { describe_histogram!($name, Unit::$unit, $help) };
}

measures! {
    gauge "callboard_build_info" Count "1, with the version and the kind of database as labels";
    summary "callboard_http_seconds" Seconds "Requests to the API, by method, route and class of status";
    counter "callboard_events_total" Count "Events committed";
    counter "callboard_deliveries_begun_total" Count "Deliveries made with their events";
    counter "callboard_deliveries_total" Count "Deliveries whose last attempt is over, by status";
    gauge "callboard_deliveries_waiting" Count "Deliveries that wait, by status; measured every minute";
    gauge "callboard_deliveries_in_flight" Count "Delivery attempts under way";
    gauge "callboard_delivery_oldest_due_seconds" Seconds "How long the oldest due delivery has been waiting";
    summary "callboard_delivery_lag_seconds" Seconds "From an event to the start of its first delivery attempt";
    counter "callboard_delivery_attempts_total" Count "Delivery attempts, by result";
    summary "callboard_delivery_attempt_seconds" Seconds "Duration of delivery attempts";
    summary "callboard_delivery_lane_width" Count "Attempts that an endpoint may have under way at once";
    counter "callboard_mails_total" Count "Attempts to send an e-mail to a user, by status";
    counter "callboard_sms_total" Count "SMS to contacts handed over, by environment and result";
    counter "callboard_emails_total" Count "E-mails to contacts handed over, by environment and result";
    gauge "callboard_clock_gap_seconds" Seconds "How far the wall clock is ahead of the service's time";
    gauge "callboard_clock_suspect" Count "1 while the wall clock is in doubt: nothing leaves";
    gauge "callboard_dispatch_paused" Count "1 while the operator has paused all dispatch";
    gauge "callboard_calls_live" Count "Calls that this process carries";
    gauge "callboard_sip_legs" Count "Legs of live calls on the wire";
    counter "callboard_sip_dropped_total" Count "SIP messages and connections dropped, by reason";
    counter "callboard_sip_unsent_datagrams_total" Count "SIP datagrams for which the socket had no room";
    counter "callboard_sip_long_datagrams_total" Count "SIP messages over UDP of more than 1300 bytes";
    counter "callboard_sip_legs_stored_late_total" Count "Calls picked up while the database took over 2 s to note it";
    counter "callboard_sip_registrations_total" Count "Answers to our REGISTERs, by outcome";
    gauge "callboard_rtp_ports_in_use" Count "Pairs of ports that carry a leg's sound";
    counter "callboard_calls_blocked_total" Count "Calls that a filter turned down for the number they show, by trunk";
    counter "callboard_calls_abandoned_total" Count "Calls that a person answered and that count as abandoned, by why";
    counter "callboard_caller_rests_total" Count "Numbers that were given a rest because networks block them or nobody answers";
    counter "callboard_standby_messages_failed_total" Count "Standing messages that no voice could say";
    counter "callboard_calls_late_total" Count "Calls sent back to the queue because their moment had passed";
    counter "callboard_calls_sent_on_total" Count "Incoming calls that were led to another node";
    gauge "callboard_media_connections" Count "Browsers' connections to rooms";
    counter "callboard_media_dropped_packets_total" Count "Datagrams of sound that nobody took, by reason";
    summary "callboard_media_late_seconds" Seconds "How late sound was sent, by kind of line";
    counter "callboard_media_unheard_total" Count "Pieces of sound that no talk took in";
    gauge "callboard_recording_spool_bytes" Bytes "Recorded sound on disk that is not stored yet";
    gauge "callboard_recording_spool_writes" Count "0 while no line can be recorded, else 1";
    counter "callboard_recording_dropped_frames_total" Count "Pieces of sound missing in recordings";
    counter "callboard_speech_failures_total" Count "Words that a speech provider did not say, by provider and error";
    summary "callboard_turn_seconds" Seconds "From the end of speech to each stage of its answer";
    summary "callboard_first_sound_seconds" Seconds "From a pick-up, or the end of a greeting, to our first sound";
    summary "callboard_transcription_seconds" Seconds "From the end of speech to its words, by provider";
    summary "callboard_brain_seconds" Seconds "From the words to the first token of the answer, by provider";
    summary "callboard_voice_seconds" Seconds "From the first clause to its first sound, by provider";
    counter "callboard_transcription_dropped_pieces_total" Count "Pieces of sound a transcription provider was too slow for";
    counter "callboard_live_sound_dropped_pieces_total" Count "Pieces of sound a brain that hears by itself was too slow for";
    counter "callboard_transcription_failures_total" Count "Utterances a transcription provider failed, by provider and error";
    counter "callboard_turn_speculations_total" Count "Answers begun early, by outcome";
    counter "callboard_opt_out_model_total" Count "Verdicts of the model for opt-outs, by outcome";
    gauge "callboard_register_age_seconds" Seconds "Since a register's maker gave its file out, by name";
    counter "callboard_register_lookups_total" Count "Requests to look numbers up in a register over its API, by name and result";
    counter "callboard_reassigned_lookups_total" Count "Requests to look reassigned numbers up, by result";
    gauge "callboard_trunk_up" Count "1 if the trunk's peer answers, by trunk";
    summary "callboard_writer_batch_items" Count "Commits joined in one transaction";
    gauge "callboard_commits_failing" Count "1 while the last commit has failed";
    gauge "callboard_workspaces" Count "Workspaces that this node has";
    counter "callboard_mcp_calls_total" Count "Calls of assistants' tools, by tool and result";
    counter "callboard_trace_spans_dropped_total" Count "Spans that the collector of traces did not get, by reason";
    counter "callboard_requests_handed_on_total" Count "Requests led to another node";
    counter "callboard_nodes_ended_total" Count "Silent nodes that this one has ended";
    gauge "callboard_generation" Count "Which process of this database it is, counted up";
    gauge "callboard_actors" Count "Running actors, by kind";
    gauge "callboard_actors_parked" Count "Actors that are parked now, after repeated panics";
    counter "callboard_actors_parked_total" Count "Parkings, by kind of actor";
    counter "callboard_actor_panics_total" Count "Panics, survived or not";
}
