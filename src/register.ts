/** Records a program without changes of its code, with `node --import runspan/register`. @packageDocumentation */
import './runspan.ts';

export { started } from './register/register.ts';
