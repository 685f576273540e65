/** The functions traced by langfuse: functions wrapped in `observe`, its span processor, OTLP as JSON. */
import '../peers/langfuse.mjs';
