// Ask the observatory to do something. Only this page can: with the token of this start of the observatory.
export async function ask(view, path, wish) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Token": view.token },
    body: JSON.stringify(wish),
  });
  const body = await answer.json();
  return answer.ok ? body : { error: body.error };
}

export const may = (view, path) => (view.may ?? []).includes(path);

export async function strike(view, name, target) {
  const body = await ask(view, "/api/fault", { name, target });
  return body.said ?? body.error;
}
