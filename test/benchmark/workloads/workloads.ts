import { decorator } from './decorator.js';
import { handoff } from './handoff.js';
import { hold } from './hold.js';
import { hot1 } from './hot1.js';
import { hot4 } from './hot4.js';
import { idle } from './idle.js';
import { loop } from './loop.js';
import { par } from './par.js';
import { seq } from './seq.js';
import { tries } from './try.js';
import type { Workload } from './workload.js';

export const WORKLOADS: readonly Workload[] = [seq, tries, loop, par, hot1, hot4, handoff, idle, hold, decorator];
