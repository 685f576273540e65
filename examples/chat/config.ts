/** Texts that the page shows. The texts describe the agent, so change them together with `server/agent/agent.ts`. */
export const config = {
  title: 'Chat',
  welcome: 'What would you like to know?',
  introduction: 'A supervisor answers, with the help of a researcher who reads the documents, and a writer.',
  placeholder: 'Ask about the documents',
  suggestions: ['What is the spool?', 'Compare OpenAI and LangChain', 'Save a note: read about the spool'],
} as const;
