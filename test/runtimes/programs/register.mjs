import 'runspan/register';
import './unwrapped.mjs';
