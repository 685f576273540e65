async function main() {
  // No model answers this request.
  console.log((await fetch(`${process.env.MODEL_URL}/health`)).status);
  const response = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'Is it raining?' }] }),
  });
  const { choices } = await response.json();
  console.log(choices[0].message.content);
}

main();
