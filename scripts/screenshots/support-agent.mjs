// The runs of a customer support agent: turns with a model, a search and two tools. One turn fails in a tool, one waits
// for a slow search, and one is still open.

const MODEL = 'gpt-4.1-mini';
const DOLLARS_PER_TOKEN = { read: 0.4e-6, written: 1.6e-6 };

/** Returns one day's turns until `nowMs`, latest last, as records for `POST /runs/batch`. */
export function supportAgentRuns(nowMs) {
  const random = randomFrom(7);
  const runs = [];
  for (let index = 0; index < QUESTIONS.length * 6; index++) {
    const startMs = nowMs - (QUESTIONS.length * 6 - index) * 410_000 + random() * 200_000;
    runs.push(...turn(QUESTIONS[index % QUESTIONS.length], startMs, random, 'done'));
  }
  runs.push(...turn(QUESTIONS[2], nowMs - 96_000, random, 'slow'));
  runs.push(...turn(QUESTIONS[1], nowMs - 41_000, random, 'failed'));
  runs.push(...turn(QUESTIONS[0], nowMs - 19_000, random, 'done'));
  runs.push(...turn(QUESTIONS[4], nowMs - 2_400, random, 'open'));
  return runs;
}

const QUESTIONS = [
  {
    question: 'My headphones from order 48213 arrived with a crack. What can I do?',
    topic: 'damaged item',
    customer: 'c_2081',
    order: { id: '48213', status: 'delivered', items: ['Studio headphones'], total: '129.00 EUR', age_days: 4 },
    documents: [
      [
        'Returns of damaged items',
        'Damaged items are replaced or refunded within **30 days** of delivery. A photo helps, but is not needed below 200 EUR.',
        0.91,
      ],
      ['Shipping of replacements', 'Replacements leave the warehouse within one working day and cost nothing.', 0.84],
      ['Repairs', 'Items of 200 EUR and more may be repaired instead, within 10 working days.', 0.71],
    ],
    answer:
      'I am sorry that your **Studio headphones** arrived damaged. Your order is 4 days old, so you can choose:\n\n1. **A replacement**, shipped within one working day, at no cost.\n2. **A full refund** of 129.00 EUR to your card.\n\nA photo is not needed for this order. Which of the two would you like?',
  },
  {
    question: 'Please refund order 47760, I cancelled it yesterday.',
    topic: 'refund',
    customer: 'c_1178',
    order: { id: '47760', status: 'cancelled', items: ['Desk lamp', 'USB-C hub'], total: '84.50 EUR', age_days: 1 },
    documents: [
      [
        'Refunds of cancelled orders',
        'Refunds of cancelled orders are issued at once, to the means of payment that was used.',
        0.93,
      ],
      ['Refunds that fail', 'When a card has expired, the refund goes to store credit after the customer agrees.', 0.8],
    ],
    answer: 'Your refund of **84.50 EUR** is on its way to your card. It takes 2 to 3 working days to show.',
  },
  {
    question: 'Where is my parcel? Order 48801.',
    topic: 'delivery',
    customer: 'c_3340',
    order: { id: '48801', status: 'in transit', items: ['Mechanical keyboard'], total: '99.00 EUR', age_days: 6 },
    documents: [['Parcels in transit', 'Parcels are traced after 7 working days without a scan.', 0.88]],
    answer: 'Your keyboard was scanned in Leipzig this morning and should arrive **tomorrow**.',
  },
  {
    question: 'Do you ship to Norway?',
    topic: 'shipping',
    customer: 'c_0912',
    documents: [
      ['Countries', 'We ship to the EU, Norway, Switzerland and the UK. Norway: 4 to 6 days, 14.90 EUR.', 0.95],
    ],
    answer: 'Yes. Shipping to Norway takes 4 to 6 days and costs 14.90 EUR.',
  },
  {
    question: 'Can I change the address of order 48990?',
    topic: 'address change',
    customer: 'c_2750',
    order: { id: '48990', status: 'packing', items: ['Monitor arm'], total: '59.00 EUR', age_days: 0 },
    documents: [['Changing an order', 'Addresses can be changed until the parcel has left the warehouse.', 0.9]],
    answer: 'Yes, it has not left yet. Which address should it go to?',
  },
];

const SYSTEM =
  'You answer customers of a shop for electronics. Be short and kind. Use the documents, and look up the order before you promise anything. Never promise a refund that a tool has not confirmed.';

function turn({ question, topic, customer, order, documents, answer }, startMs, random, fate) {
  const trace = new Trace(
    'support-agent',
    startMs,
    { thread_id: `t_${customer}`, customer, channel: 'chat', release: '2026.11.2' },
    random,
  );
  const root = trace.root({ question, customer });
  const ms = (from, to) => from + random() * (to - from);

  const classify = trace.run(root, 'classify', 'llm', 12);
  trace.say(
    classify,
    [
      { role: 'system', content: 'Name the topic of the question in one or two words.' },
      { role: 'user', content: question },
    ],
    topic,
    ms(280, 520),
  );

  const search = trace.run(root, 'search-help-center', 'retriever', 3);
  search.inputs = { query: question };
  const embed = trace.run(search, 'embed-query', 'embedding', 1);
  embed.inputs = { input: question };
  embed.extra = { metadata: { ls_model_name: 'text-embedding-3-small', usage_metadata: usage(14, 0) } };
  trace.end(embed, ms(60, 120), { dimensions: 1536 });
  if (fate === 'slow') {
    const attempts = trace.run(search, 'vector-index', 'chain', 2);
    attempts.inputs = { index: 'help-center', timeout_ms: 10_000, attempt: 1 };
    trace.fail(
      attempts,
      10_000,
      'TimeoutError: The index help-center did not answer within 10000 ms\n    at VectorIndex.query (file:///app/src/vector-index.js:48:13)\n    at async search (file:///app/src/search.js:19:18)',
    );
    const again = trace.run(search, 'vector-index', 'chain', 400);
    again.inputs = { index: 'help-center', timeout_ms: 10_000, attempt: 2 };
    trace.end(again, 2_140, { matches: documents.length });
  }
  trace.end(search, ms(20, 90), {
    documents: documents.map(([title, page_content, score]) => ({
      page_content,
      type: 'Document',
      metadata: { title, source: `help/${title.toLowerCase().replaceAll(' ', '-')}.md`, score },
    })),
  });
  if (order !== undefined) {
    const lookup = trace.run(root, 'lookup_order', 'tool', 4);
    lookup.inputs = { order_id: order.id };
    trace.end(lookup, ms(70, 160), order);
  }
  const messages = conversation({ question, order, documents });
  if (topic === 'refund') {
    checkRefund(trace, root, { order, customer, messages, ms });
    const refund = trace.run(root, 'issue_refund', 'tool', 6);
    refund.inputs = { order_id: order.id, amount: '84.50', currency: 'EUR', to: 'card' };
    const request = trace.run(refund, 'POST /v1/refunds', 'tool', 5);
    request.inputs = { url: 'https://payments.example/v1/refunds', body: refund.inputs };
    if (fate === 'failed') {
      trace.fail(request, 806, REQUEST_ERROR);
      trace.fail(refund, 2, REFUND_ERROR);
      trace.fail(root, 6, REFUND_ERROR);
      return trace.runs;
    }
    trace.end(request, ms(400, 800), { status: 201 });
    trace.end(refund, ms(10, 40), { status: 'accepted', reference: `rf_${order.id}` });
  }
  const reply = trace.run(root, 'answer', 'llm', 9);
  const firstMs = ms(340, 700);
  reply.events = [{ name: 'new_token', time: iso(reply.startMs + firstMs) }];
  if (fate === 'open') {
    trace.ask(reply, messages);
    return trace.runs;
  }
  trace.say(reply, messages, answer, firstMs + ms(700, 1_900));
  trace.end(root, 4, { answer });
  return trace.runs;
}

const REQUEST_ERROR =
  'HttpError: 402 from POST https://payments.example/v1/refunds: card_expired\n    at send (file:///app/src/http.js:33:9)\n    at async PaymentClient.refund (file:///app/src/payment-client.js:68:20)';
const REFUND_ERROR =
  'PaymentError: The card ending in 4242 has expired (code card_expired)\n    at PaymentClient.refund (file:///app/src/payment-client.js:71:11)\n    at async issueRefund (file:///app/src/tools/issue-refund.js:24:20)\n    at async Agent.callTool (file:///app/src/agent.js:112:22)\n  cause: HttpError: 402 from POST https://payments.example/v1/refunds: card_expired\n    at send (file:///app/src/http.js:33:9)';

/** Records the steps before a refund. */
function checkRefund(trace, root, { order, customer, messages, ms }) {
  const check = trace.run(root, 'check-refund', 'chain', 3);
  check.inputs = { order_id: order.id, customer };
  const history = trace.run(check, 'load-history', 'tool', 2);
  history.inputs = { customer, months: 12 };
  trace.end(history, ms(40, 110), { orders: 7, refunds: 1 });
  const policy = trace.run(check, 'refund-policy', 'prompt', 2);
  policy.inputs = { status: order.status, age_days: order.age_days };
  trace.end(policy, 1, { output: 'Cancelled orders are refunded in full.' });
  const decide = trace.run(check, 'decide', 'llm', 3);
  trace.say(
    decide,
    [...messages, { role: 'user', content: 'May this order be refunded? Answer yes or no, with a reason.' }],
    'yes: cancelled before it was sent',
    ms(350, 600),
  );
  const parse = trace.run(check, 'parse-decision', 'parser', 1);
  parse.inputs = { input: 'yes: cancelled before it was sent' };
  trace.end(parse, 1, { allowed: true, reason: 'cancelled before it was sent' });
  trace.end(check, 3, { allowed: true });
}

function conversation({ question, order, documents }) {
  const found = documents.map(([title, text]) => `<document title="${title}">${text}</document>`).join('\n');
  const asked = [
    { role: 'system', content: SYSTEM },
    { role: 'user', content: `${found}\n\n${question}` },
  ];
  if (order === undefined) return asked;
  const call = {
    id: `call_${order.id}`,
    type: 'function',
    function: { name: 'lookup_order', arguments: JSON.stringify({ order_id: order.id }) },
  };
  return [
    ...asked,
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: call.id, content: JSON.stringify(order) },
  ];
}

/** Runs below one root in sequence: each starts when the previous one ends. */
class Trace {
  runs = [];
  #name;
  #nowMs;
  #metadata;
  #random;

  constructor(name, startMs, metadata, random) {
    this.#name = name;
    this.#nowMs = startMs;
    this.#metadata = metadata;
    this.#random = random;
  }

  root(inputs) {
    const root = this.run(undefined, this.#name, 'chain', 0);
    root.inputs = inputs;
    root.tags = ['production', this.#metadata.channel];
    root.extra = { metadata: this.#metadata };
    return root;
  }

  run(parent, name, runType, afterMs) {
    this.#nowMs += afterMs;
    const id = idAt(this.#nowMs, this.#random);
    const stamp = `${iso(this.#nowMs).replace(/[-:.]/g, '')}${id}`;
    const run = {
      id,
      trace_id: parent?.trace_id ?? id,
      dotted_order: parent === undefined ? stamp : `${parent.dotted_order}.${stamp}`,
      ...(parent === undefined ? {} : { parent_run_id: parent.id }),
      name,
      run_type: runType,
      start_time: iso(this.#nowMs),
      session_name: 'support',
    };
    Object.defineProperty(run, 'startMs', { value: this.#nowMs });
    this.runs.push(run);
    return run;
  }

  end(run, ms, outputs) {
    this.#nowMs += ms;
    run.end_time = iso(this.#nowMs);
    run.outputs = outputs;
  }

  fail(run, ms, error) {
    this.#nowMs += ms;
    run.end_time = iso(this.#nowMs);
    run.error = error;
  }

  ask(run, messages) {
    run.inputs = { model: MODEL, messages, temperature: 0.2 };
    run.extra = { metadata: { ls_provider: 'openai', ls_model_name: MODEL, ls_temperature: 0.2 } };
  }

  say(run, messages, content, ms) {
    this.ask(run, messages);
    const usage_metadata = usage(Math.ceil(JSON.stringify(messages).length / 4), Math.ceil(content.length / 4));
    this.end(run, ms, {
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }],
      usage_metadata,
    });
  }
}

function usage(input_tokens, output_tokens) {
  const total_cost = input_tokens * DOLLARS_PER_TOKEN.read + output_tokens * DOLLARS_PER_TOKEN.written;
  return { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens, total_cost };
}

function iso(ms) {
  const micros = Math.round((ms % 1) * 1_000);
  return new Date(ms).toISOString().replace('Z', `${`${micros % 1_000}`.padStart(3, '0')}Z`);
}

/** Returns a UUIDv7 for this time. */
function idAt(ms, random) {
  const time = Math.floor(ms).toString(16).padStart(12, '0');
  const digits = Array.from({ length: 18 }, () => Math.floor(random() * 16).toString(16)).join('');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${digits.slice(0, 3)}-8${digits.slice(3, 6)}-${digits.slice(6)}`;
}

/** Returns the same pseudo-random numbers each time (mulberry32). */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
