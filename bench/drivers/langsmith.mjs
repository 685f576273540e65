/** The functions traced by langsmith: functions wrapped in its `traceable`, batches in the background. */
import '../peers/langsmith.mjs';
