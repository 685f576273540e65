import './runspan.ts';
import './register/register.ts';
