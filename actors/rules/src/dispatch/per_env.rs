//! One of something for each env.
use entities::values::Env;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerEnv<T> {
    live: T,
    test: T,
}

impl<T> PerEnv<T> {
    pub fn new(of: impl Fn(Env) -> T) -> Self {
        PerEnv {
            live: of(Env::Live),
            test: of(Env::Test),
        }
    }

    pub fn get(&self, env: Env) -> &T {
        match env {
            Env::Live => &self.live,
            Env::Test => &self.test,
        }
    }

    pub fn get_mut(&mut self, env: Env) -> &mut T {
        match env {
            Env::Live => &mut self.live,
            Env::Test => &mut self.test,
        }
    }
}
