// A list of tasks that all open windows share. The SDK comes from its CDN; `?sdk=URL` names another folder with the same files.

const parameters = new URLSearchParams(location.search);
const sdk = parameters.get("sdk") ?? "https://www.gstatic.com/firebasejs/10.12.2";
const { initializeApp } = await import(`${sdk}/firebase-app.js`);
const {
  addDoc, collection, connectFirestoreEmulator, deleteDoc, getFirestore, onSnapshot, orderBy, query, serverTimestamp,
  updateDoc, writeBatch,
} = await import(`${sdk}/firebase-firestore.js`);

const db = getFirestore(initializeApp({ projectId: "web-tasks", apiKey: "any" }));
connectFirestoreEmulator(db, parameters.get("host") ?? "localhost", Number(parameters.get("port") ?? 8080));
const tasks = collection(db, "tasks");
const element = (id) => document.getElementById(id);
let completed = [];

function row(task) {
  const item = element("task").content.cloneNode(true).firstElementChild;
  const { title, done } = task.data();
  item.classList.toggle("done", done);
  item.classList.toggle("pending", task.metadata.hasPendingWrites);
  item.querySelector("span").textContent = title;
  const box = item.querySelector("input");
  box.checked = done;
  box.addEventListener("change", () => updateDoc(task.ref, { done: box.checked }));
  item.querySelector("button").addEventListener("click", () => deleteDoc(task.ref));
  return item;
}

onSnapshot(query(tasks, orderBy("created")), { includeMetadataChanges: true }, (snapshot) => {
  element("list").replaceChildren(...snapshot.docs.map(row));
  completed = snapshot.docs.filter((task) => task.get("done"));
  element("count").textContent = `${snapshot.size - completed.length} of ${snapshot.size} open`;
  element("clear").hidden = completed.length === 0;
  const isLive = !snapshot.metadata.fromCache;
  element("state").textContent = isLive ? "Live" : "Offline";
  element("state").classList.toggle("live", isLive);
});

element("add").addEventListener("submit", (event) => {
  event.preventDefault();
  addDoc(tasks, { title: element("title").value, done: false, created: serverTimestamp() });
  element("title").value = "";
});

element("clear").addEventListener("click", () => {
  const batch = writeBatch(db);
  for (const task of completed) batch.delete(task.ref);
  batch.commit();
});
