// A page that never changes.
tell(JSON.parse(document.getElementById("told").textContent));
fillPage();
