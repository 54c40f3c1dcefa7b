import { describeReadme, TOOLS } from './describe-readme.js';

describeReadme({ nestjs: 12, type: 'module', packages: ['@nestjs/schedule@12', 'ioredis@6', ...TOOLS] });
