/** Traces a program without code changes: `node --import runspan/register`. @packageDocumentation */
import './runspan.ts';

export { started } from './register/register.ts';
