import { describeReadme, TOOLS } from '../describe-readme.js';

describeReadme({ nestjs: 10, type: 'commonjs', packages: ['@nestjs/schedule@4', 'ioredis@5', 'typescript@5'] });
describeReadme({
  nestjs: 11,
  type: 'commonjs',
  packages: ['@nestjs/schedule@6', 'ioredis@5', 'typescript@5', ...TOOLS],
});
describeReadme({ nestjs: 11, type: 'commonjs', packages: ['@nestjs/schedule@6', 'redis@5', 'typescript@5'] });
describeReadme({ nestjs: 12, type: 'module', packages: ['@nestjs/schedule@12', 'redis@6'] });
