//! The names of code and of interpreted methods.

use prof_model::Budget;

use super::super::names::LASTS;
use super::{ALL_VERSIONS, HOTSPOT_17, Image, Machine, NAME_FIELDS};
use crate::{Memory, SyntheticCode};

/// The name that a perf map has for an address.
fn name(map: &str, address: u64) -> Option<&str> {
    let mut named = map.lines().filter_map(|line| {
        let (start, rest) = line.split_once(' ')?;
        let (size, name) = rest.split_once(' ')?;
        let [start, size] = [start, size].map(|it| u64::from_str_radix(it, 16).unwrap());
        (start..start + size).contains(&address).then_some(name)
    });
    let found = named.next();
    assert_eq!(named.next(), None, "{map}");
    found
}

#[test]
fn code_has_names_also_where_it_replaces_other_code() {
    let mut machine = Machine::new(&[&ALL_VERSIONS, &HOTSPOT_17, &NAME_FIELDS]);
    let heavy = machine.method(["Hot$$Lambda+0x7f", "heavy", "(I[Ljava/lang/String;)V"]);
    let light = machine.method(["a/Hot", "light", "()J"]);
    let broken = machine.method(["a/Hot", "broken", "(I"]);
    let interpreter = machine.blob("Interpreter", 40, 0, -1);
    let old = machine.blob("nmethod", 48, 6, 0);
    let unnamed = machine.blob("native nmethod", 20, 6, 0);
    machine.set_method(old, heavy);
    machine.set_method(unnamed, broken);
    let mut hotspot = machine.start().unwrap();
    for address in [interpreter, old, unnamed] {
        hotspot.code_at(&mut machine.image, address, 0).unwrap();
    }
    let mut before = [old, interpreter, unnamed, 1];
    let recorded = before;
    hotspot.move_replacing(&mut before);
    assert_eq!(before, recorded);
    let new = machine.put(40..88, "nmethod", (4, 0));
    assert_eq!(new, old);
    machine.set_method(new, light);
    let later = LASTS;
    hotspot.code_at(&mut machine.image, new, later).unwrap();
    let mut after = recorded;
    hotspot.move_replacing(&mut after);
    assert!(SyntheticCode::contains(after[0]));
    assert_eq!(after[1..], recorded[1..]);
    let mut map = String::new();
    hotspot.write_perf_map(&mut map);
    let heavy = "void Hot$$Lambda/0x7f.heavy(int, java.lang.String[])";
    assert_eq!(name(&map, before[0]), Some(heavy));
    assert_eq!(name(&map, before[0] + 400), Some(heavy));
    assert_eq!(name(&map, after[0]), Some("long a.Hot.light()"));
    assert_eq!(name(&map, interpreter), Some("Interpreter"));
    assert_eq!(name(&map, unnamed), None);
}

#[test]
fn interpreted_methods_have_addresses_of_their_own() {
    let mut machine = Machine::new(&[&ALL_VERSIONS, &HOTSPOT_17, &NAME_FIELDS]);
    let methods = [
        machine.method(["a/Hot", "heavy", "(I)V"]),
        machine.method(["a/Hot", "light", "()J"]),
        machine.method(["a/Hot", "broken", "(I"]),
    ];
    let mut hotspot = machine.start().unwrap();
    let mut interpreted = |method, now| hotspot.interpreted(&mut machine.image, method, now);
    let [Some(heavy), Some(light), None] = methods.map(|method| interpreted(method, 0)) else {
        panic!("only the last one has no name");
    };
    assert_eq!(interpreted(methods[0], 9 * LASTS), Some(heavy));
    assert_eq!(interpreted(0, 0), None);
    let mut recorded = [1, heavy, light];
    hotspot.move_replacing(&mut recorded);
    assert_eq!(recorded, [1, heavy, light]);
    assert!(![1, 1 << 63].into_iter().any(SyntheticCode::contains));
    let mut map = String::new();
    hotspot.write_perf_map(&mut map);
    // Some readers look up callers one below.
    for address in [heavy, heavy - 1] {
        assert_eq!(name(&map, address), Some("void a.Hot.heavy(int)"));
    }
    assert_eq!(name(&map, light), Some("long a.Hot.light()"));
    assert_eq!(map.lines().count(), 2, "{map}");
}

#[test]
fn code_without_room_for_its_name_has_no_wrong_one() {
    let mut machine = Machine::new(&[&ALL_VERSIONS, &HOTSPOT_17, &NAME_FIELDS]);
    let [heavy, light] = ["heavy", "light"].map(|it| machine.method(["a/Hot", it, "()V"]));
    let old = machine.blob("nmethod", 48, 6, 0);
    machine.set_method(old, heavy);
    let budget = Budget::new(4000);
    let mut hotspot = machine.start_with(&budget.account(7)).unwrap();
    hotspot.code_at(&mut machine.image, old, 0).unwrap();
    let mut others = Vec::new();
    for pid in 8..20 {
        let mut charge = budget.account(pid).for_names();
        while charge.add(1) {}
        others.push(charge);
    }
    let new = machine.put(0..48, "nmethod", (4, 0));
    assert_eq!(new, old);
    machine.set_method(new, light);
    hotspot.code_at(&mut machine.image, new, LASTS).unwrap();
    assert_eq!(hotspot.interpreted(&mut machine.image, light, LASTS), None);
    let mut after = [new, 1];
    hotspot.move_replacing(&mut after);
    let mut map = String::new();
    hotspot.write_perf_map(&mut map);
    assert_eq!(name(&map, old), Some("void a.Hot.heavy()"));
    assert!(SyntheticCode::contains(after[0]));
    assert_eq!((name(&map, after[0]), after[1]), (None, 1));
    assert_eq!(budget.take_lacking(), [7]);
    hotspot.forget_names();
    let mut map = String::new();
    hotspot.write_perf_map(&mut map);
    assert_eq!(map, "");
    drop((hotspot, others));
    assert_eq!(budget.used(), 0);
}

#[test]
fn the_memory_of_an_interpreted_method_can_get_another_one() {
    let mut machine = Machine::new(&[&ALL_VERSIONS, &HOTSPOT_17, &NAME_FIELDS]);
    let method = machine.method(["a/Hot", "heavy", "()V"]);
    let other = machine.method(["a/Hot", "light", "()V"]);
    let mut hotspot = machine.start().unwrap();
    let mut at = |image: &mut Image, now| {
        let bytecodes = hotspot.bytecodes(image, method, now).unwrap();
        let address = hotspot.interpreted(image, method, now).unwrap();
        let mut map = String::new();
        hotspot.write_perf_map(&mut map);
        (bytecodes, name(&map, address).unwrap().to_owned())
    };
    let before = at(&mut machine.image, 0);
    assert_eq!(before.1, "void a.Hot.heavy()");
    let mut const_method = [0; 8];
    machine.image.read(other + 8, &mut const_method);
    machine.image.set(method + 8, &const_method);
    assert_eq!(at(&mut machine.image, 1), before);
    let after = at(&mut machine.image, LASTS);
    assert_eq!(after.1, "void a.Hot.light()");
    assert_ne!(after.0, before.0);
    // What is known at the end of a process stays.
    assert_eq!(at(&mut Image(Vec::new()), 9 * LASTS), after);
}
