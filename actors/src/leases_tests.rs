use super::*;
use uuid::Uuid;

const ONE: TenantId = TenantId(Uuid::from_u128(1));
const TWO: TenantId = TenantId(Uuid::from_u128(2));

fn since() -> Since {
    Since {
        last_seen: None,
        taken_at: Moment::from_millis(0),
    }
}

#[test]
fn one_process_alone_has_everything() {
    let leases = Leases::whole();
    for of in [Of::Workspace(ONE), Of::Installation, Of::Anybody] {
        assert!(leases.holds(of) && leases.serves(of), "{of:?}");
    }
    assert_eq!((leases.node(), leases.since(ONE)), (None, None));
}

#[test]
fn a_node_serves_what_has_arrived_and_writes_until_it_has_given_up() {
    let leases = Leases::of(NodeId(Uuid::from_u128(9)));
    let seen = |of: Of| (leases.holds(of), leases.serves(of));
    assert_eq!(seen(ONE.into()), (false, false));
    assert_eq!(seen(Of::Anybody), (true, true));
    leases.took(ONE, true, since());
    assert_eq!(seen(ONE.into()), (true, false), "it is arriving");
    leases.arrived(&[ONE, TWO]);
    assert_eq!(seen(ONE.into()), (true, true));
    assert_eq!(seen(TWO.into()), (false, false), "nobody has taken it");
    assert_eq!(leases.leave(&[ONE, TWO]), [ONE]);
    assert_eq!(seen(ONE.into()), (true, false), "what is under way is still written");
    assert!(leases.enter(ONE).is_err());
    leases.stay(&[ONE]);
    assert_eq!(leases.here(), [ONE]);
    let stay = leases.enter(ONE).unwrap();
    assert!(!leases.are_quiet(&[ONE]));
    drop(stay);
    assert!(leases.are_quiet(&[ONE, TWO]));
    leases.gave_up(&[ONE]);
    assert_eq!(seen(ONE.into()), (false, false));
}

#[test]
fn the_installation_is_one_more_lease_and_no_workspace() {
    let leases = Leases::of(NodeId(Uuid::from_u128(9)));
    assert!(!leases.holds(Of::Installation));
    leases.took(INSTALLATION, false, since());
    assert!(leases.are_second_hand(&[INSTALLATION]) && !leases.are_second_hand(&[ONE]));
    leases.arrived(&[INSTALLATION]);
    assert!(leases.serves(Of::Installation));
    assert_eq!(leases.count(), 0);
    leases.took(ONE, true, since());
    assert_eq!(leases.count(), 1);
}
