//! Functions of PHP and Ruby in the stacks of a plain user's samples: the threads that read them
//! have no priority, so that other load would matter.

use prof_tests::{Need, Session, needs};

use crate::{php, ruby};

#[test]
fn plain_users_see_functions_of_php() {
    if needs(&[php::NEEDS, &[Need::PlainSampling]].concat()) {
        php::PHP.check(&Session::plain_user_alone(), &["-F", "999"], &[], 0.9);
    }
}

#[test]
fn plain_users_see_functions_of_ruby() {
    if needs(&[ruby::NEEDS, &[Need::PlainSampling]].concat()) {
        ruby::RUBY.check(&Session::plain_user_alone(), &["-F", "999"], &["0"], 0.8);
    }
}
