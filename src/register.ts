import './runspan.ts';

export { started } from './register/register.ts';
