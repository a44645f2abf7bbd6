//! Whom we listen to: the addresses of trunks, and those that something was sent to and whose answer is awaited. What comes from
//! elsewhere is not even read.
use entities::ids::{TenantId, TrunkId};
use ipnet::IpNet;
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

/// Networks of one trunk: what its `inbound_addresses` may hold, and its host's addresses.
const MOST_NETWORKS: usize = 96;

#[derive(Debug, Default)]
struct Known {
    networks: HashMap<TrunkId, (TenantId, Vec<IpNet>)>,
    /// Single addresses, which most of them are: one look-up each.
    hosts: HashMap<IpAddr, Vec<TrunkId>>,
    ranges: Vec<(IpNet, TrunkId)>,
    /// Whom something was sent to and is being waited for, each so often.
    spoken_with: HashMap<IpAddr, usize>,
}

/// Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct SourceTable(Arc<RwLock<Known>>);

impl SourceTable {
    /// Instead of what was known of the trunk. What is more than 96 networks is left out.
    pub fn set(&self, (tenant, trunk): (TenantId, TrunkId), mut networks: Vec<IpNet>) {
        networks.truncate(MOST_NETWORKS);
        let its = (tenant, networks);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.networks.get(&trunk) == Some(&its) {
            return;
        }
        known.networks.insert(trunk, its);
        known.index();
    }

    /// Nobody speaks for the trunk any more.
    pub fn forget(&self, trunk: TrunkId) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.networks.remove(&trunk).is_some() {
            known.index();
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it answers is heard as long as this is kept, though no trunk's name leads there any more: dialogs stay.
    pub fn speak_with(&self, address: IpAddr) -> SpokenWith {
        let address = address.to_canonical();
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *known.spoken_with.entry(address).or_default() += 1;
        SpokenWith {
            table: self.clone(),
            address,
        }
    }

    /// Is it an address of any trunk, or spoken with?
    pub fn is_known(&self, address: IpAddr) -> bool {
        let (known, address) = (self.read(), address.to_canonical());
        known.hosts.contains_key(&address)
            || known.spoken_with.contains_key(&address)
            || known.ranges.iter().any(|(network, _)| network.contains(&address))
    }

    /// Is it known where it speaks from?
    pub fn knows(&self, trunk: TrunkId) -> bool {
        self.read().networks.contains_key(&trunk)
    }

    /// Two workspaces may use one carrier: then its address is of both their trunks.
    pub fn trunks_of(&self, address: IpAddr) -> Vec<TrunkId> {
        let (known, address) = (self.read(), address.to_canonical());
        let mut trunks = known.hosts.get(&address).cloned().unwrap_or_default();
        let ranges = known.ranges.iter().filter(|(network, _)| network.contains(&address));
        trunks.extend(ranges.map(|(_, trunk)| *trunk));
        trunks.sort_unstable();
        trunks.dedup();
        trunks
    }

    /// Whose trunks these are, each of them once.
    pub fn workspaces_of(&self, trunks: &[TrunkId]) -> Vec<TenantId> {
        let known = self.read();
        let its = trunks.iter().filter_map(|trunk| known.networks.get(trunk));
        let mut workspaces: Vec<_> = its.map(|(tenant, _)| *tenant).collect();
        workspaces.sort_unstable();
        workspaces.dedup();
        workspaces
    }
}

/// Dropping it ends what it stands for.
pub struct SpokenWith {
    table: SourceTable,
    address: IpAddr,
}

impl Drop for SpokenWith {
    fn drop(&mut self) {
        let mut known = self.table.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = known.spoken_with.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                known.spoken_with.remove(&self.address);
            }
        }
    }
}

impl Known {
    fn index(&mut self) {
        self.hosts.clear();
        self.ranges.clear();
        for (trunk, (_, networks)) in &self.networks {
            for network in networks {
                if network.prefix_len() == network.max_prefix_len() {
                    self.hosts
                        .entry(network.addr().to_canonical())
                        .or_default()
                        .push(*trunk);
                } else {
                    self.ranges.push((*network, *trunk));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const ONE: TrunkId = TrunkId(Uuid::from_u128(1));
    const TWO: TrunkId = TrunkId(Uuid::from_u128(2));
    const WORKSPACE: TenantId = TenantId(Uuid::from_u128(3));

    fn networks(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn an_address_leads_to_every_trunk_that_allows_it_and_to_no_other() {
        let table = SourceTable::default();
        table.set((WORKSPACE, ONE), networks(&["192.0.2.1/32", "198.51.100.0/24"]));
        table.set((WORKSPACE, TWO), networks(&["192.0.2.1/32", "2001:db8::/32"]));
        for (address, trunks) in [
            ("192.0.2.1", vec![ONE, TWO]),
            ("::ffff:192.0.2.1", vec![ONE, TWO]),
            ("198.51.100.77", vec![ONE]),
            ("2001:db8::5", vec![TWO]),
            ("192.0.2.2", vec![]),
            ("2001:db9::5", vec![]),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(table.trunks_of(address), trunks, "{address}");
            assert_eq!(table.is_known(address), !trunks.is_empty(), "{address}");
        }
        assert_eq!(table.workspaces_of(&[ONE, TWO]), [WORKSPACE]);
        assert!(table.knows(ONE) && !table.knows(TrunkId(Uuid::from_u128(3))));
        let stranger: IpAddr = "203.0.113.9".parse().unwrap();
        let (one, two) = (table.speak_with(stranger), table.speak_with(stranger));
        drop(one);
        assert!(table.is_known(stranger) && table.trunks_of(stranger).is_empty());
        drop(two);
        assert!(!table.is_known(stranger));
        table.set((WORKSPACE, TWO), Vec::new());
        table.forget(ONE);
        assert!(!table.knows(ONE));
        assert!(!table.is_known("192.0.2.1".parse().unwrap()));
    }
}
