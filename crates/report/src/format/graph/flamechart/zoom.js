
// Replaces what inferno's script does when a frame is clicked: the lanes have one time.
function zoom(node) {
    var rect = find_child(node, "rect").attributes;
    show_time(parseInt(rect["fg:x"].value), Math.max(1, parseInt(rect["fg:w"].value)));
}
function show_time(start, length) {
    unzoombtn.classList.remove("hide");
    var end = start + length, shown = [];
    for (var i = 0; i < frames.children.length; i++) {
        var group = frames.children[i];
        var rect = find_child(group, "rect").attributes;
        var from = Math.max(start, parseInt(rect["fg:x"].value));
        var to = Math.min(end, parseInt(rect["fg:x"].value) + parseInt(rect["fg:w"].value));
        group.classList.toggle("hide", to <= from);
        if (to <= from) continue;
        rect.x.value = format_percent(100 * (from - start) / length);
        rect.width.value = format_percent(100 * (to - from) / length);
        shown.push(group);
    }
    draw_axis(start, length);
    update_text_for_elements(shown);
}
var unzoom_frames = unzoom;
unzoom = function () {
    unzoom_frames();
    draw_axis(0, LENGTH);
};
// Called whenever the window's width or what is shown has changed.
var update_text_of_frames = update_text_for_elements;
update_text_for_elements = function (elements) {
    update_text_of_frames(elements);
    document.getElementById("axis").setAttribute("width", frames.attributes.width.value);
};
function draw_axis(start, length) {
    var axis = document.getElementById("axis");
    var step = 1;
    for (var ten = 1; length / step > 8; ten *= 10) {
        for (var digit of [1, 2, 5]) {
            step = digit * ten;
            if (length / step <= 8) break;
        }
    }
    var scale = [["ns", 1], ["\u00b5s", 1e3], ["ms", 1e6], ["s", 1e9]];
    var unit = scale[step < 1e2 ? 0 : step < 1e5 ? 1 : step < 1e8 ? 2 : 3];
    var decimals = step % unit[1] ? 1 : 0;
    axis.textContent = "";
    for (var time = Math.ceil(start / step) * step; time <= start + length; time += step) {
        var x = format_percent(100 * (time - start) / length);
        add_to(axis, "line", {x1: x, x2: x, y1: 14, y2: axis.getAttribute("height"), stroke: "rgb(215,215,215)"});
        add_to(axis, "text", {x: x, y: 11, fill: "rgb(90,90,90)"}).textContent =
            (time / unit[1]).toFixed(decimals) + " " + unit[0];
    }
}
function add_to(parent, name, attributes) {
    var element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (var key in attributes) element.setAttribute(key, attributes[key]);
    return parent.appendChild(element);
}
